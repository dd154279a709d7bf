"""Handlers of LSP requests and notifications, one file each."""

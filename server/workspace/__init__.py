"""Workspace of the client: folders, documents, notebooks, and the settings for them."""

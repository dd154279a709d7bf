"""Kernels on several devices."""

"""Findings of kernels that were run, in an interpreter or on a device."""

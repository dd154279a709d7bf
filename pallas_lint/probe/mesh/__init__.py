"""Kernels on several devices, as people read of them: findings and charts."""

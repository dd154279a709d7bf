"""Reports on kernels that run on several devices: findings and charts."""

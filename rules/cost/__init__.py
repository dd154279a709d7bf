"""PAL8xx: what a launch costs on a device, predicted without it by the probe."""

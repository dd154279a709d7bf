"""Event traces of each device from a kernel's jaxpr, by partial evaluation at the device's coordinates."""

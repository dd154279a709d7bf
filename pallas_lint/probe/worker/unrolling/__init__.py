"""From a kernel's jaxpr to what each device does, event after event: it is partially evaluated at its coordinates."""

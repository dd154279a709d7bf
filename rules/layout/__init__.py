"""PAL2xx: layout and memory spaces."""

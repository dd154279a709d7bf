"""PAL4xx: right results."""

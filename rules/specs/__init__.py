"""PAL3xx: grid, specs and signatures."""

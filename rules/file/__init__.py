"""PAL0xx: the file itself."""

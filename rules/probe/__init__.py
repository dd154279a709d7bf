"""PAL9xx: defects that only the probe finds."""

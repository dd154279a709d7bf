"""PAL9xx: what only the probe can say."""

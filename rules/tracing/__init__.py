"""PAL5xx: tracing."""

"""Facts about launches and finished traces, for rules."""

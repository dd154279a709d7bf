"""PAL1xx: can this be lowered here? Driven by the compatibility data."""

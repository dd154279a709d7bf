"""PAL6xx: debugging aids that do not do what they seem to."""

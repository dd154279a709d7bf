"""Configuration: settings files, targets, the project's jax version, selected rules and files."""

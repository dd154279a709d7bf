"""What a run is told: settings, targets, the project's jax, which rules and which files."""

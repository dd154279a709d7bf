"""What is shown of the engine's work: hovers, hints, lenses, completions, pages."""

"""Views of the engine's results: hovers, hints, lenses, completions, pages."""

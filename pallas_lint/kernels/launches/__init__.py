"""From a call that launches to a Launch: kernel, grid, specs, backend."""

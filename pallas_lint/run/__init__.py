"""A run over files: the project, results kept from earlier runs, fixing."""

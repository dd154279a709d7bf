"""Text: the only place where files are read and written, and the parts of a source."""

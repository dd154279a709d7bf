"""The function to probe: its file's text, its arguments, and how it is called."""

"""The function that is asked for: its file's text, its arguments, and how it is called."""

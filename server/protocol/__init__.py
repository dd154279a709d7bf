"""The language server protocol: the session with a client, its texts, places and edits."""

"""Code actions: fixes, and comments and settings that suppress findings."""

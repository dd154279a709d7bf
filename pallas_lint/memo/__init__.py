"""What an edit leaves as it was."""

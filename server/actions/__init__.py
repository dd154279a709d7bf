"""What code actions change: fixes, comments and settings that silence."""

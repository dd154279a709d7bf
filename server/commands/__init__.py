"""What the server does when a client asks it to: its commands."""

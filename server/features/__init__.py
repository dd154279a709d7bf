"""What the server answers, one file a request."""

"""Commands of the server, one file each."""

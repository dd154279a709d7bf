"""What the client has open: folders, documents, notebooks, and the settings for them."""

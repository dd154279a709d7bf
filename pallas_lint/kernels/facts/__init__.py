"""Questions that rules ask of launches and finished traces."""

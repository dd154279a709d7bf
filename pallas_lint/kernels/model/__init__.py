"""The data model: abstract values, launches, and kernel traces."""

"""What a rule is, and which there are: built-in ones and those of other packages."""

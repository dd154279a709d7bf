"""The base class of rules, and the rules there are: built-in ones and those of other packages."""

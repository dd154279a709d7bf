"""The rules, one file each, in folders by family."""

"""What writes the pages of docs/ that are made of docstrings."""

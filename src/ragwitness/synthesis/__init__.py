"""Data that replaces a corpus: made from it, checked against it, or made without it."""

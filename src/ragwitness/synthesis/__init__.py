"""Data that stands in a corpus's place: made from it, checked against it, or made without it."""

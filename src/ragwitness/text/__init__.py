"""Documents, their words, and the corpus that ships with the package."""

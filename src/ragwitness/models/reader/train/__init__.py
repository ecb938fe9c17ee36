"""Training of the embedded reader from scratch; torch is imported only in this package."""

"""What reproduces the papers and trains the reader; not part of the wheel. See README.md."""

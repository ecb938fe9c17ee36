"""What reproduces the papers; not part of the wheel. See README.md."""

"""Training of the embedded reader, whose weights are in the wheel."""

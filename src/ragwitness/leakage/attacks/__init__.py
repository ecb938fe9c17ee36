"""The extraction attacks, one module each."""

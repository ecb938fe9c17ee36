"""Integer noise: the discrete Gaussian, exact, and from a committed table."""

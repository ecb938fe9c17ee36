"""What noisy answers cost: exact Gaussian accounting, and the bounds of the collusion paper."""

"""Running meters of a tenant's index: what all its answers, to whomever, have spent so far."""

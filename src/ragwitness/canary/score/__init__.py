"""How strongly a deployed model leans towards a canary: three ways to ask, one shape of result."""

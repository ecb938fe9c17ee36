"""What a proof of one answer costs, measured and beside the collusion paper's model (§5.8)."""

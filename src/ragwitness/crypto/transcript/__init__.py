"""What prover and verifier exchange through the log: versioned records, one text for each (G5)."""

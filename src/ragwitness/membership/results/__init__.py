"""Results of audits, evaluations and plans: their stored schema and their reports."""

"""Retrieval that adds noise to every score and then selects, in integers from end to end."""

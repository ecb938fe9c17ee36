"""Launchers of the same work: processes on this machine, or actors of a Ray cluster."""

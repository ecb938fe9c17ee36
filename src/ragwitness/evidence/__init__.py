"""Evidence packs: a run sealed before its first query, and all of it recomputed by somebody else.

The seal and the log of runs are written while a run goes on. A pack is made of a finished one, and
its recipient verifies it offline.
"""

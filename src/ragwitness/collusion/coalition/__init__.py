"""How many accounts work together: the paper's estimator (R5) beside stronger ones.

An estimate gates a policy; it certifies nothing. What a coalition can learn is bounded by the
noise alone, whoever asks (``privacy``).
"""

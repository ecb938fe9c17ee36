"""The embedded reader: a small language model trained for this package, run in numpy.

It reads retrieved passages and answers from them. Being small, it shows how audits work and
lets them be tested against known truth; it does not rank attacks against large models.
"""

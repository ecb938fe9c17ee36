"""What can be asked of Ragwitness: each errand is one frozen dataclass, declared once.

A field carries its type, its default, its help (the entry of the docstring), how people are asked
for it, what is done with a path in it, and what it applies to (:mod:`ragwitness.kit.options`). All
surfaces follow from the fields: the verb's options and ``--config``, the questions of ``init`` and
of the forms, the keyword arguments in Python and in assertions. An errand carries itself out.
"""

"""The generator of the corpus that ships with the package (``ragwitness.text.sample``)."""

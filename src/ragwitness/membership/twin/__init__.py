"""Twin (ours): the document's true values against values that could as well stand there."""

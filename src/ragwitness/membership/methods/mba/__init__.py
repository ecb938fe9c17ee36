"""MBA (WWW 2025): membership audit by masked words of the document."""

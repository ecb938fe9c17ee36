"""Tables of the papers, run again and printed beside what was published."""

"""Pages over run folders: what was found, what it rests on, what it cost. They only read."""

"""A chat in the terminal: lines in, answers out as they are written."""

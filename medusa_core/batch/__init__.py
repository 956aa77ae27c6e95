"""`python -m medusa_core batch`: a file of conversations, answered many at a time."""

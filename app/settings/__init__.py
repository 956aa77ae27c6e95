"""What the user can choose for the whole program: declared once, read, written and shown."""

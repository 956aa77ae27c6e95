"""What the user can choose: declared once, read, written, shown and tested from that."""

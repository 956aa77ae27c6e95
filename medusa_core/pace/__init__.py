"""What steps cost here, which rows pay, and when drafts rest."""

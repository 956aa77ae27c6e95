"""What rows cost here, which pay, and when drafts rest."""

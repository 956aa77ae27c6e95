"""What is installed, what goes with what, and what may be removed."""

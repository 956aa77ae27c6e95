"""Who runs the loop over a target's blocks."""

"""What a step did and why, as its events say: tree, steps, verification, two ways side by side."""

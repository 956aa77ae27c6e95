"""What a step did and why: tree, steps, verification, two ways side by side."""

"""What a step did and why: the tree, the steps, the verification table, two modes side by side."""

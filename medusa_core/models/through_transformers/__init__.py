"""Models that transformers runs, as no family of ours does: which, how large, and their weights."""

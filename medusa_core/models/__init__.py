"""Targets: blocks, families, weights, tokenizers; who runs them is `runtime`."""

"""Blocks of every architecture as one description: loaded weights, and torch's way to run them."""

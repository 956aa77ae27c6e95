"""Blocks of every architecture as specs: their settings, tensors and sizes. Needs no torch."""

"""Medusa heads: reading the published formats, and evaluating them."""

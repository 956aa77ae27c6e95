"""Batches as they are answered: many conversations of a file at a time."""

"""Batches in child processes: their specs, progress and answers."""

"""Checkpoints on disk, read tensor by tensor; `system.files` has the container formats."""

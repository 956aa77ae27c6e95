"""Weights as they lie on disk, read tensor by tensor; containers are `system.files`."""

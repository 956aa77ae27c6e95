"""Pickled weights made into safetensors, in a process of its own."""

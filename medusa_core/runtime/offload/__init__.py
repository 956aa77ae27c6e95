"""Weights of layers that are kept in main memory or on a disk, and read for each pass."""

"""Quantized weights kept on disk, so that the next load is quick."""

"""Prefixes of the text model's tensors in checkpoints of multimodal models and of Nemotron-H."""

from __future__ import annotations

# Prefix in the files, and the prefix that a text-only model has in its place.
TEXT_PREFIXES = (
    ("model.language_model.", "model."),
    ("language_model.", ""),
    ("backbone.", "model."),
)

"""Targets: one file per architecture family over shared parts."""

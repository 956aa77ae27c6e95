"""Renders Markdown; every rendered character has a source position."""

"""Markdown whose every rendered character knows the source it comes from."""

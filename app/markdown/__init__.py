"""Markdown whose every rendered character knows its source; it knows no token and no chat."""

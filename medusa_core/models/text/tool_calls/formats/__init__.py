"""Formats in which models write calls of functions; each module exports its `SPEC`."""

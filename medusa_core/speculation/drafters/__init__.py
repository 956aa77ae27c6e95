"""Drafters: one file each, exporting `SPEC`; a drafter is a list of sources."""

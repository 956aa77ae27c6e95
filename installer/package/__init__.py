"""Builds the packages: what people install who have no checkout; a file for each format."""

"""The Documents page: collections of files from which answers are given."""

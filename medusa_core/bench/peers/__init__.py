"""Other programs on the same weights: one file each, exporting `SPEC`."""

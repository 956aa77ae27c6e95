"""Architecture families: one file each, exporting `SPEC`."""

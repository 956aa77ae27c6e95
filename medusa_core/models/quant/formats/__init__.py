"""Weight formats: one file each, exporting `SPEC`."""

"""Published formats of heads: one file each, exporting `SPEC`."""

"""Published formats of Medusa heads: one file each, exporting `SPEC`."""

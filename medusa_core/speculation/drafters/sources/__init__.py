"""Sources of drafts: one file each, exporting `SPEC`."""

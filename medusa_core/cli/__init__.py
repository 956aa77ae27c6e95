"""Command lines: one file a command, none of them a library for the others."""

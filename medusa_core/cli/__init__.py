"""Command line: a module for each command, and shared arguments."""

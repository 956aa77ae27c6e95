"""Text files that are attached to prompts; read in a sandboxed process."""

"""Collections of the user's files: parsed, divided into chunks, and searched."""

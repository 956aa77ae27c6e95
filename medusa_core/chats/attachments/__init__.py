"""Files whose text goes with a prompt: read in a process of their own."""

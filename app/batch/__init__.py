"""The Batch page: a file of prompts in, a file of answers out, through the night."""

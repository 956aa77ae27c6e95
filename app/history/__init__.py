"""The list of conversations, and how they are kept while they are written."""

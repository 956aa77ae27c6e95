"""The conversations of the user: their list, and how they are kept while they are written."""

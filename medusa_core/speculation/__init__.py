"""Drafting and verifying: who guesses, which guesses are accepted, which rows pay."""

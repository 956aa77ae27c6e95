"""Kinds of heads and their published formats; drafting with them is `speculation`."""

"""Speculative decoding: drafters, acceptance rules, and the choice of tree sizes."""

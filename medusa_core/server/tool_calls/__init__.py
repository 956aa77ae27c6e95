"""Calls of functions in answers: how models write them, how they are read and enforced."""

"""Races of drafters and peers, and step costs, for `medusa bench`."""

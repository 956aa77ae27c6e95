"""Whose work Medusa Chat holds and installs: `python3 installer licences` writes LICENCES.md."""

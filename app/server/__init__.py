"""The page of the server, by which other programs use the window's model."""

"""Other programs use the window's model: the switch, the address, and requests as they come."""

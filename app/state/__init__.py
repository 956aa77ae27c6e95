"""State of the window without widgets: views show it, and tests ask it."""

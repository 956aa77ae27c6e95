"""Small widgets that several rooms use, and none of which knows the engine."""

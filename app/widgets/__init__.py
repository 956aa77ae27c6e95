"""Small widgets that several rooms use; they don't know the engine."""

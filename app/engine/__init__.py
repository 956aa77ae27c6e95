"""What the window has of the engine: the bridge between threads, and the model that is loaded."""

"""The window's access to the engine: the bridge between threads, and the loaded model."""

"""View-independent state of the window."""

"""The engine: worker, sessions, and the decoding loop."""

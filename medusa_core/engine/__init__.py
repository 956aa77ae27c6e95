"""The engine: worker, sessions, and the decoding loop; it loads nothing by itself."""

"""Remote models behind OpenAI-compatible endpoints, as an engine."""

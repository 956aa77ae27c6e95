"""Models of other machines, behind an OpenAI-compatible address, as an engine of their own."""

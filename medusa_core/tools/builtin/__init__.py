"""Built-in tools: each module exports its `SPEC`."""

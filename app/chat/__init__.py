"""The conversation: composer, messages, figures under an answer, and the strip of steps."""

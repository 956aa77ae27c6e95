"""Other programs use the loaded model: HTTP, in the forms of OpenAI, Anthropic and llama-server."""

"""The window of Medusa Chat: everything that knows Qt."""

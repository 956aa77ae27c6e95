"""Connections to tool servers by the Model Context Protocol (extra `tools`)."""

"""The Tools page: built-in tools, servers of tools (MCP), and approvals."""

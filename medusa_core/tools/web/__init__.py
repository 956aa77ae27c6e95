"""Requests to the web for tools: checked addresses, and pages read in a process with limits."""

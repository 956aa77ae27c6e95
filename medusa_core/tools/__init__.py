"""Tools that models may call: servers and their settings, approvals, built-in functions."""

"""Measures this machine's rates, for plans of what is offloaded."""

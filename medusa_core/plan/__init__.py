"""`python -m medusa_core plan`."""

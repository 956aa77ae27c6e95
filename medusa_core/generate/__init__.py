"""`python -m medusa_core generate`, and answering without a worker."""

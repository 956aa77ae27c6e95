"""Batches as those see them who don't run them: answers, progress, and processes. Without torch."""

"""Batches as those see them who don't run them: answers and progress."""

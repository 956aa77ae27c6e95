"""Models without a native architecture, which run through transformers."""

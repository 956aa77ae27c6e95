"""Cache of quantized weights on disk."""

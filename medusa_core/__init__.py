"""The engine of Medusa Chat: Medusa decoding for small GPUs, without any Qt."""

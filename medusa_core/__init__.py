"""The engine of Medusa Chat: Medusa decoding for small GPUs, without any Qt."""

__version__ = "0.2.0"

"""Embedding models: vectors of texts, by decoders on our runners or by encoders of transformers."""

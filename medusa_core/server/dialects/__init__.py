"""The APIs that other programs speak: each file exports its routes and its form of errors."""

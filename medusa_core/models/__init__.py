"""Targets: architectures, block specs, weights, tokenizers, datastores; `runtime` runs them."""

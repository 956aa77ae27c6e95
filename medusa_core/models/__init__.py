"""Targets: blocks, families, weights, tokenizers, datastores of drafts; `runtime` runs them."""

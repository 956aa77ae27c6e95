"""Who runs the loop over blocks: compiled, resident, as graphs, offload."""

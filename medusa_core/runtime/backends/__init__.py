"""What computes blocks: torch on any device, the compiled step on a CPU, kernels on a GPU."""

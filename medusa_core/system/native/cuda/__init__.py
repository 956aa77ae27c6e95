"""Kernels for NVIDIA cards: CUDA C++ sources, what builds them, and what launches them."""

# Parts into which attention splits the keys at most, and rows of a decoding step.
MAX_SPLITS, MOST_STEP_ROWS = 32, 64

# Types of blocks that the kernels of rows.cu multiply as GGUF files store them.
BLOCK_TYPES = frozenset(("q4_0", "q8_0", "nf4_0", "q4_k", "q5_k", "q6_k"))

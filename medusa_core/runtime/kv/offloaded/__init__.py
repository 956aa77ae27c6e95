"""KV rows of some layers, offloaded to main memory or to a disk and prefetched layer by layer."""

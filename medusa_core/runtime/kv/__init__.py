"""Key and value caches: one allocator for all, rows in plain numbers or few bits."""

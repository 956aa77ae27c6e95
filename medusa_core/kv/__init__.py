"""Key and value caches."""

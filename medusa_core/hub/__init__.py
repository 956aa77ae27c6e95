"""Finding, fetching and keeping models: the Hub's files in the cache that all programs share."""

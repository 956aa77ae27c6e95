"""Tool calls: the format in which a model writes them, and the parser that reads them."""

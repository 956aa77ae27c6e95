"""Search within a conversation; `history` searches all conversations."""

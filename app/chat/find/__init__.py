"""Finding words in a conversation; searching all of them is `history`."""

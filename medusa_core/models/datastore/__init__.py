"""What drafts are looked up in: frequent phrases, texts of a conversation and earlier answers."""

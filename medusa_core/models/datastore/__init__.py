"""What drafts are looked up in: frequent phrases, and earlier answers."""

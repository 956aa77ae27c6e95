"""The list of conversations, and saving them; `medusa_core.chats.history` has the database."""

"""The list of conversations, and saving them; the files are `medusa_core.chats.history`."""

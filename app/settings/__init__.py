"""Application settings; those of a conversation are in `chat_settings`."""

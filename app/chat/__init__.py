"""The conversation; its settings are in `chat_settings`, the list of all in `history`."""

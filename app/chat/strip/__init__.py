"""The strip below the chat: tokens, speed and acceptance of the current answer."""

"""The side panel: how a conversation is answered."""

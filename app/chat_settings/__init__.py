"""The side panel: how a conversation is answered; settings of the program are in `settings`."""

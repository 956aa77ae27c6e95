"""The composer and its attachments."""

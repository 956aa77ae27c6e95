"""Texts from which drafts are retrieved: n-gram tables, the conversation, earlier answers."""

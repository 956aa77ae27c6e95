"""Processes of ours that do dangerous work within bounds."""

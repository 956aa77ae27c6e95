"""Appearance of the application: colours, fonts, icons, style sheet."""

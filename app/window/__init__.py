"""The main window: connects the other packages, none of which imports it."""

"""A screen reader's view of the window, through the accessibility bus.

`python -m tests.system.screen_reader.session` runs it; what speaks on the bus needs the
system's Python.
"""

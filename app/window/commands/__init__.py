"""The table of the window's commands for shortcuts, menus and the palette."""

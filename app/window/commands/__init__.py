"""All that can be done in the window, as one table: for keys, menus and the palette."""

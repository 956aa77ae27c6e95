"""The pages of the window, a file each: menu, palette, keys and tests read its `SPEC`."""

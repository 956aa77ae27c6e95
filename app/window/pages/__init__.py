"""The pages of the window: each module declares one in `SPEC`."""

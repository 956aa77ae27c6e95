"""The main window: it joins the rooms, and none of them knows it."""

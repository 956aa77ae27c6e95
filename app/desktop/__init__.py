"""What the desktop around the window offers: notifications, folders in its file manager."""

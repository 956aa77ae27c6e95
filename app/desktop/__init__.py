"""Services of the desktop: notifications, and folders in its file manager."""

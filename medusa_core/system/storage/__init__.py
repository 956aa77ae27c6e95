"""SQLite files that survive crashes and full disks."""

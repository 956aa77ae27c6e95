"""Services of the process beside the window: logs, crashes, single instance, garbage collection."""

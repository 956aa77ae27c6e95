"""Long work in child processes, as the window starts and watches it. Without torch."""

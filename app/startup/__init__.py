"""What happens before and beside the window: logs, crashes, one instance, garbage; no page."""

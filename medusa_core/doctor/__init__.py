"""Check what works on this computer, and say how to repair the rest. No Qt."""

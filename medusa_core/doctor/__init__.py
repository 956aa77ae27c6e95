"""What works on this computer, in words, with the cure where something doesn't. No Qt."""

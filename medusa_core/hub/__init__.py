"""The Hub and its cache: finding, fetching and checking files. No Qt, no torch."""

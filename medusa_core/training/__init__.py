"""The recipe that makes the embedded demo model: data to weights, heads and trees."""

"""Plans of a model's memory and speed, before `loading` loads it."""

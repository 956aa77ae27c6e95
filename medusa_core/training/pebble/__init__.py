"""The recipe of Llama-Pebble, the embedded model: only the command line knows it."""

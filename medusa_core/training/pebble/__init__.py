"""The recipe of Llama-Pebble, the tests' small model: only the command line knows it."""

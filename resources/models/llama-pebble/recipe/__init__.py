"""The recipe of Llama-Pebble, the model beside it; nothing else knows it."""

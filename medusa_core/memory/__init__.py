"""What a model takes of a device's memory, known before it is loaded by `loading`."""

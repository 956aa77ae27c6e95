"""The computer below all: files, processes, compiled code, resources. It knows no model."""

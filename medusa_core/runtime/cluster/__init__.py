"""Layers on several machines: stages that hold some of them, and the client."""

"""Cached rows of some layers that lie below the device, and how a pass meets them."""

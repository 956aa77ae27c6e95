"""The name of what a user lets models run on: one of torch's, or a cluster's."""

from __future__ import annotations

# Before HOST:PORT: machines that have the layers are chosen as a device is.
CLUSTER = "cluster:"


def cluster_of(device: str) -> str:
    """HOST:PORT of the cluster that a user chose as a device; empty for one of this computer."""
    return device.removeprefix(CLUSTER) if device.startswith(CLUSTER) else ""


def device_here(device: str) -> str:
    """Torch's name of what computes on this computer; with a cluster, the best there is."""
    return "" if cluster_of(device) else device

"""The model manager: what fits, is installed, is on its way; fetching is `medusa_core.hub`."""

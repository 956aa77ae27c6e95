"""The model manager: discovers, installs and downloads models through `medusa_core.hub`."""

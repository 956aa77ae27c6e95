"""Where weights, cache and activations of a batch lie (Sheng et al. 2023, FlexGen)."""

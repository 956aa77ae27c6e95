"""Search of a batch's placement and block size (Sheng et al. 2023, FlexGen)."""

"""Where weights, cache and activations of a batch lie for the most tokens a second.

Source: Sheng et al., "FlexGen" (2023), section 4 and appendix A.3.
"""

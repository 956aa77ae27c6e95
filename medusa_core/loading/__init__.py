"""A target and how it is loaded: choices, offers, forecasts of speed; no decoding."""

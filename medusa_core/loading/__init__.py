"""A target and how it is planned and loaded: choices, offers, forecasts; no decoding."""

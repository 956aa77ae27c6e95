"""`python -m medusa_core bench`: decoding modes and peers on the same prompts."""

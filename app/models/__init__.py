"""The model manager: what there is, what fits, what is installed, what is on its way."""

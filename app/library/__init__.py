"""The model manager: what there is, what fits, what is here, what is on its way."""

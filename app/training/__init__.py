"""The page that trains heads; `medusa_core.training` does the training."""

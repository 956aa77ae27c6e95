"""The page that trains heads; the training itself is `medusa_core.training`."""

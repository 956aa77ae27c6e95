"""The Batch page; what answers a batch is `medusa_core.engine.batch`."""

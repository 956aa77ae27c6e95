"""LoRA adapters in PEFT's format: read, applied, written."""

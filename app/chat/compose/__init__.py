"""What is written and attached before it is sent."""

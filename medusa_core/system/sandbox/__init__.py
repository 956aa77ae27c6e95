"""Child processes that handle untrusted data within bounds on time, memory and output."""

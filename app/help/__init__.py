"""First steps, documents, About and diagnostics; `medusa_core.doctor` has the checks."""

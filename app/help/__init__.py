"""The first steps, About, and the page of diagnostics; what is checked is `medusa_core.doctor`."""

"""The first steps, About, and the page of diagnostics."""

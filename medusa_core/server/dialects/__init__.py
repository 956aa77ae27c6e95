"""APIs of the server; each module exports its routes and its form of errors."""

"""Weight formats behind one call: linear layers in few bits."""

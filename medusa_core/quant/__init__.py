"""Weight formats behind one call: one file per format in `formats`."""

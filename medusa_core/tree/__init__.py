"""Token trees: their shape, their mask, and the search for the best one."""

"""Running a target's blocks over rows, wherever they lie; which rows is `speculation`."""

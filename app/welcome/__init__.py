"""The first steps: what this is, which model fits here, where files go."""

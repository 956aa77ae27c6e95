"""What models said in earlier answers: drafts are found in it; it goes with its conversation."""

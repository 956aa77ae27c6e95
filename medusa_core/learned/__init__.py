"""What models said in earlier answers: drafts are found in it, and it goes with its conversation."""

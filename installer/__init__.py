"""Sets up `.venv`, opens the application, runs its checks. Standard library only."""

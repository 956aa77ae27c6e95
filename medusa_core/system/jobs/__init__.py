"""Long work in processes of their own, as those see it who don't run it. Without torch."""

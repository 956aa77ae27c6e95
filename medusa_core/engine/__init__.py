"""The engine: worker, scheduler, sessions, decoding loop; embedding models beside them."""

"""The engine: worker, scheduler, sessions and the decoding loop; models are loaded by `loading`."""

"""Races, step costs and peers, as `bench` measures them; chats measure in `speculation.tuning`."""

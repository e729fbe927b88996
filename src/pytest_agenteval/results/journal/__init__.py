"""The journal of a run: one flushed line per event, and how a run is resumed from it."""

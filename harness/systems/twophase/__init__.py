"""The two-phase store with consistent cuts under test (`nodes.twophase`)."""

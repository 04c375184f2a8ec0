"""Where nodes run, and what carries faults out there: `local` (one process a node, a relay between them)."""

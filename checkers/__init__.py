"""Pure checkers: a history in, a verdict out. They know neither the harness nor the nodes."""

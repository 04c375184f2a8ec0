"""The pure half of clients: what each answer of a store means for the operation."""

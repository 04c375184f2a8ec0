"""Real Tarantool as a node: the Lua file that configures it and answers what clients ask of a node."""

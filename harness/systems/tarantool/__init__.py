"""Real Tarantool, which answers the calls of qsync by a Lua script of ours."""

"""Tarantool's wire frames and xlog files: encode and decode, pure functions over bytes."""

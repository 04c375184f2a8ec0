"""Runs on the hosts: imports nothing but the standard library and what `harness.cluster.ssh.bundle` uploads."""

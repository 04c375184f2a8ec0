"""The command line: `environment` makes .venv before anything is installed, `main` runs one of `verbs`."""

"""`python -m harness.cli`, which is what the `./qsync` script starts."""

import sys

try:
    from harness.cli.main import main
except ImportError as error:
    # Python's own exit code for this would be 1, which says that an anomaly was found.
    print(f"qsync: cannot start: {error}; remove .venv and try again", file=sys.stderr)
    sys.exit(70)

sys.exit(main())

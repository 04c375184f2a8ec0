"""`python -m harness.cli`, which is what the `./qsync` script starts."""

import sys

from harness.cli.main import main

sys.exit(main())

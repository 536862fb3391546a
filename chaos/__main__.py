"""``make chaos``."""

import sys

from chaos.run import main

sys.exit(main(sys.argv[1:]))

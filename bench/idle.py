"""A worker that does nothing, so that what its node costs is all that is left to be seen."""

import time

print("idle worker runs", flush=True)
time.sleep(3600)

"""Run a command and write what its process took: wall seconds, processor seconds, most memory.

The system counts a new process's largest memory from that of the process it was forked from, so
what is measured is started from this small one, by its path: ``launch.py FIGURES COMMAND…``.
"""

import json
import os
import subprocess
import sys
import time

if __name__ == "__main__":
    figures, *command = sys.argv[1:]
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    per_mb = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, KiB elsewhere
    with open(figures, "w", encoding="utf-8") as lines:
        json.dump([wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / per_mb], lines)
    sys.exit(process.returncode if process.returncode >= 0 else 128 - process.returncode)

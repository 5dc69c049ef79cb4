"""A process whose threads die together: one that lost a thread would look alive and serve nobody."""

import subprocess
import sys

from bridge.protocol.threads import FAILED

PROGRAM = """
import threading, time
from bridge.protocol.threads import die_together
die_together()
threading.Thread(target=lambda: 1 // 0, name="worker").start()
time.sleep(20)
print("still here")
"""


def test_an_error_in_a_thread_ends_the_process_and_is_told():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert "ZeroDivisionError" in done.stderr
    assert done.stderr.splitlines()[-1] == "the thread worker has failed: ZeroDivisionError"

# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs functions as tests, one after the other."""
import sys
import traceback


def run(tests):
    """The exit code; the last line printed is "N passed, N failed"."""
    failed = 0
    for test in tests:
        name = test.__name__.replace("_", " ")
        try:
            test()
            print(f"ok   {name}")
        except Exception:  # whatever it is, the others are still worth running
            failed += 1
            print(f"FAIL {name}")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0

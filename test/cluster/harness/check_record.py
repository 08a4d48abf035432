#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Asks the invariants again about a cluster that is gone: check_record.py record.json …

A failed run leaves record.json with its logs; FLEX_RECORDS=DIR keeps those of all clusters."""
import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import invariants  # noqa: E402
from harness.timeline import Record  # noqa: E402


def main():
    for name in sys.argv[1:]:
        record = Record(**json.loads(Path(name).read_text(encoding="utf-8")))
        print(f"{name}: {len(record.vms)} VMs, {len(record.requests)} requests, {len(record.job_looks)} jobs, "
              f"{record.ended - record.began:.0f} s")
        for violation in invariants.check(record):
            print("\n".join([violation.text(record.began), *invariants.story(record, violation)]))


main()

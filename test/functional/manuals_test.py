#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every option of every program is in its manual page, and the page has no other.

Usage: manuals_test.py MANUALS PROGRAM…
"""
import re
import subprocess
import sys
from pathlib import Path

PAGES = {"flex-resume-fail": "flex-suspend"}


def help_of(words):
    """The help of a command and, below it, of its subcommands."""
    text = subprocess.run([*words, "--help"], capture_output=True, text=True, check=True).stdout
    # In capitals with newer CLI11.
    subcommands = re.split(r"^subcommands:\n", text, maxsplit=1, flags=re.M | re.I)[1:]
    for name in re.findall(r"^  ([a-z][a-z-]*) ", "".join(subcommands), re.M):
        text += help_of([*words, name])
    return text


def options_of_program(program):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", help_of([program])))


def options_of_page(page):
    text = page.read_text(encoding="utf-8").replace("\\-", "-")
    # As headings of the list of options: ".BI --config …", ".B --help", ".It Fl -port Ar N".
    mdoc = {"-" + name for name in re.findall(r"\.It Fl (-[a-z][a-z-]+)", text)}
    return mdoc or set(re.findall(r"^\.(?:TP\n\.)?BI? (--[a-z][a-z-]+)", text, re.M))


def main():
    manuals, programs = Path(sys.argv[1]), sys.argv[2:]
    failed = 0
    for program in programs:
        name = Path(program).name
        page, = manuals.glob(f"{PAGES.get(name, name)}.[18]")
        has, says = options_of_program(program), options_of_page(page)
        if has == says:
            print(f"ok   {name}: {' '.join(sorted(has))}")
            continue
        failed += 1
        print(f"FAIL {name}: only in the program {sorted(has - says)}, only in the manual page {sorted(says - has)}")
    print(f"{len(programs) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

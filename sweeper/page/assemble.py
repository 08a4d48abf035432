#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""assemble.py OUTPUT page.html style.css script.js …: the page as one file that needs nothing else."""
import pathlib
import sys

MARK = "SPDX-License-Identifier"


def text_of(path):
    """Without the license line: the page has one of its own."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if MARK not in line) + "\n"


output, page, style, *scripts = map(pathlib.Path, sys.argv[1:])
script = '"use strict";\n(() => {\n' + "".join(map(text_of, scripts)) + "})();\n"
if "</script" in script or "</style" in text_of(style):
    sys.exit("assemble.py: a part has the end of its own element in it")
html = page.read_text(encoding="utf-8")
output.write_text(html.replace("@style@", "\n" + text_of(style)).replace("@script@", "\n" + script), encoding="utf-8")

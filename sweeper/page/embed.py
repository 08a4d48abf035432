#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""embed.py index.html page.cc: the page as C++, with the hashes of its scripts for the Content-Security-Policy."""
import base64
import hashlib
import pathlib
import re
import sys

source, target = map(pathlib.Path, sys.argv[1:])
page = source.read_bytes()
scripts = re.findall(rb"<script>(.*?)</script>", page, re.DOTALL)
hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" for script in scripts]
# Numbers, not a literal: clang warns of literals beyond 64 KiB.
lines = [", ".join(str(byte if byte < 128 else byte - 256) for byte in page[at:at + 24]) for at in range(0, len(page), 24)]
target.write_text(f"""// Made from {source.name} by embed.py.
#include "sweeper/page/page.h"

namespace flex {{

namespace {{

constexpr char kPage[] = {{
{''.join(f"    {line}," + chr(10) for line in lines)}}};

}}  // namespace

std::string_view status_page() {{
  return {{kPage, sizeof kPage}};
}}

std::string_view status_page_scripts() {{
  return "{' '.join(hashes)}";
}}

}}  // namespace flex
""")

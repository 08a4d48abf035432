#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Fetches promtool, which checks our metrics and alert rules, into .tools/. Debian's package of it starts a server when it
# is installed: only the one file is taken out. Without it the build is as good; the tests that need it say so and skip.
set -eu
cd "$(dirname "$0")/.."

if [ -x .tools/promtool ] || command -v promtool >/dev/null 2>&1; then
  exit 0
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
  as_root=sudo
fi
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
log=$directory/log
fetch() {
  (cd "$directory" && apt-get -q download prometheus) >>"$log" 2>&1 </dev/null
}
# Without package lists, as in a bare chroot, there is nothing to be found.
if ! fetch && ! { $as_root apt-get -q update >>"$log" 2>&1 </dev/null && fetch; }; then
  cat "$log" >&2
  echo "setup: promtool is not to be had here; the tests that need it are skipped" >&2
  exit 0
fi
mkdir -p .tools
dpkg-deb --fsys-tarfile "$directory"/prometheus_*.deb | tar -xO ./usr/bin/promtool >"$directory/promtool"
chmod 755 "$directory/promtool"
mv "$directory/promtool" .tools/promtool
echo "setup: promtool fetched"

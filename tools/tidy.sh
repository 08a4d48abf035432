#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# clang-tidy over all sources but the tests, on all cores; any finding is an error.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
files=$(git ls-files 'lib/*.cc' 'resume/*.cc' 'suspend/*.cc' 'sweeper/*.cc' 'sweeper/rules/*.cc' 'ctl/*.cc' 'plugin/*.cc' 'timeleft/*.cc' 'emulator/*.cc' | grep -v '^emulator/shapes_data\.cc$')
total=$(echo "$files" | wc -l)
echo "tidy: $total files"
echo "$files" | xargs -P "$(nproc)" -n 1 clang-tidy -p "$build" --quiet 2>/dev/null && echo "tidy: clean"

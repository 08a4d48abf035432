#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Formats the sources, or with --check only says which are not formatted.
set -eu
cd "$(dirname "$0")/.."
files=$(git ls-files '*.cc' '*.h' | grep -v '^emulator/shapes_data\.cc$')
if [ "${1:-}" = --check ]; then
  # shellcheck disable=SC2086 # a list of words on purpose
  clang-format --dry-run --Werror $files && echo "format: all $(echo "$files" | wc -l) files are formatted"
else
  # shellcheck disable=SC2086
  clang-format -i $files
fi

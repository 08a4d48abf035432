#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds the libFuzzer targets with clang and runs each for SECONDS (60). Fails on the first crash, leak or hang;
# the input is then in build-fuzz/found. Usage: tools/fuzz.sh [SECONDS [TARGET…]]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
build="build-fuzz"

if ! command -v clang++ >/dev/null; then
  echo "fuzz: clang++ not found, skipped"
  exit 0
fi
if [ ! -f "$build/build.ninja" ]; then
  CC=clang CXX=clang++ meson setup "$build" -Dfuzz=true -Dtests=false >/dev/null
fi
ninja -C "$build" fuzzers

if [ $# -eq 0 ]; then
  for program in "$build"/test/fuzz/fuzz_*; do
    if [ -f "$program" ] && [ -x "$program" ]; then set -- "$@" "${program##*/fuzz_}"; fi
  done
fi
mkdir -p "$build/found"
for name; do
  corpus=$build/corpus/$name
  mkdir -p "$corpus"
  seeds=""
  case $name in
    resume_file) data=resume ;;
    wire) data=gce ;;
    *) data=$name ;;
  esac
  for directory in "test/fuzz/seeds/$name" "test/data/$data" "test/data/$data/bad" "test/data/$data/good" \
      "test/data/$data/slurm_gcp" "test/data/$data/vertex"; do
    if [ -d "$directory" ]; then seeds="$seeds $directory"; fi
  done
  dictionary=""
  if [ -f "test/fuzz/$name.dict" ]; then dictionary="-dict=test/fuzz/$name.dict"; fi
  log=$build/found/$name.log
  echo "fuzz: $name for $seconds s"
  # shellcheck disable=SC2086 # lists of words without spaces
  if ! "$build/test/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
      -max_len=8192 -print_final_stats=1 -artifact_prefix="$build/found/$name-" $dictionary \
      "$corpus" $seeds >"$log" 2>&1; then
    tail -n 60 "$log"
    echo "fuzz: $name FAILED, see $log"
    exit 1
  fi
  echo "fuzz: $name ok, $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs"
done

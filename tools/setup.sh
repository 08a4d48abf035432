#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs the Debian packages that building and testing need. Does nothing when all are there; never asks.
#   tools/setup.sh          what 'make build', 'demo' and 'bench' need
#   tools/setup.sh test     and what 'make test' needs: a browser, npm for Google's own client, slurmdbd and a database (no service of which is started)
#   tools/setup.sh check    and what 'make check' needs
#   tools/setup.sh deb      only what 'make deb' needs
#   tools/setup.sh chroot   only what 'make test-slurm-versions' needs outside of its chroots
set -eu

# dpkg-dev: by it meson knows where Debian has its libraries, and so where Slurm looks for plugins.
build="g++ dpkg-dev meson ninja-build pkg-config
  libslurm-dev libcurl4-openssl-dev libssl-dev nlohmann-json3-dev libyaml-cpp-dev libfmt-dev libcli11-dev libsystemd-dev
  libcpp-httplib-dev prometheus-cpp-dev zlib1g-dev"
packages="$build catch2 ccache
  slurmctld slurmd slurm-client munge lua5.4 shellcheck valgrind libc6-dbg python3 python3-pytest procps systemd logrotate rpm zsh"
if [ "${1:-}" = check ]; then
  packages="$packages clang clang-format clang-tidy libclang-rt-dev lld llvm mandoc"
elif [ "${1:-}" = test ]; then
  packages="$packages chromium chromium-driver slurmdbd mariadb-server-core mariadb-client-core"
  # A Node.js that is not Debian's brings an npm of its own, and Debian's conflicts with it.
  command -v npm >/dev/null 2>&1 || packages="$packages nodejs npm"
elif [ "${1:-}" = deb ]; then
  packages="$build build-essential debhelper lintian python3"
elif [ "${1:-}" = chroot ]; then
  packages="debootstrap debian-archive-keyring git python3"
fi

missing=""
for package in $packages; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=""
  [ "$status" = installed ] || missing="$missing $package"
done
finish() {
  case "${1:-}" in
    deb | chroot) exit 0 ;;
  esac
  "$(dirname "$0")/promtool.sh" || echo "setup: no promtool; its tests are skipped" >&2
  exit 0
}
[ -n "$missing" ] || finish "$@"

echo "setup: installing$missing"
as_root=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "setup: these packages are missing, and neither root nor sudo is at hand:$missing" >&2
    exit 1
  fi
  as_root=sudo
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends --no-remove \
      -o Dpkg::Options::=--force-confold -o DPkg::Lock::Timeout=300 "$@"
}
# shellcheck disable=SC2086 # a list of words on purpose
if ! install $missing >"$log" 2>&1 </dev/null; then
  cat "$log" >&2
  # SchedMD's own packages conflict with Debian's: whatever is there stays.
  if grep -q 'Packages need to be removed' "$log"; then
    echo "setup: other packages would have to go, most likely another Slurm's: use a machine, or a chroot, of its own" >&2
  fi
  echo "setup: apt-get failed; the packages needed are:$missing" >&2
  exit 1
fi
echo "setup: done"
finish "$@"

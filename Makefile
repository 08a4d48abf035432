# SPDX-License-Identifier: GPL-2.0-or-later
# For people: each target does all that it needs, on a fresh machine too. The build itself is meson's.
BUILD ?= build
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
# Where ccache is installed meson uses it: what 'make build' has compiled, 'make test-packages' need not.
export CCACHE_DIR ?= $(abspath $(BUILD))/ccache
export CCACHE_NOHASHDIR = 1
# debhelper has a locale of its own.
export CCACHE_SLOPPINESS = locale,pch_defines,time_macros

.PHONY: all setup build fast check-setup demo test test-slurm-versions test-packages deb check format tidy sanitize fuzz bench bench-build soak install clean help

all: build

help:
	@echo "make demo     a private Slurm and a local Compute Engine: watch one job from sbatch to clean-up"
	@echo "make test     all tests, on a real slurmctld; T=name: a test program, or the tests with that in their names"
	@echo "make check    format, clang-tidy, sanitizers, a minute of fuzzing for each parser"
	@echo "make test-slurm-versions  the build, tests and demo on Slurm 24.11 and 26.05, in chroots; SUITES=, TESTS="
	@echo "make deb      Debian packages in build-deb/, for this machine's Slurm"
	@echo "make test-packages  they are installed, followed by README to a first job, and removed, in a bare Debian"
	@echo "make soak     ten minutes of random trouble for a whole cluster; SEED=, MINUTES="
	@echo "make bench    time, calls and memory of flex-resume and flex-suspend"
	@echo "make install  PREFIX=$(PREFIX)"

setup:
	@tools/setup.sh

$(BUILD)/build.ninja: | setup
	@meson setup $(BUILD) --prefix $(PREFIX) --sysconfdir $(SYSCONFDIR)

build: setup $(BUILD)/build.ninja
	@ninja -C $(BUILD)

# For work on the sources: clang with precompiled headers takes a quarter of the time. Not what is installed.
fast: check-setup
	@[ -f $(BUILD)-fast/build.ninja ] || CXX=clang++ CXX_LD=lld meson setup $(BUILD)-fast -Db_pch=true -Doptimization=0
	@ninja -C $(BUILD)-fast

# Without the tests, which take most of a build.
demo: setup $(BUILD)/build.ninja
	@ninja -C $(BUILD) resume/flex-resume suspend/flex-suspend sweeper/flex-sweeper emulator/flex-gce-emulator \
	  plugin/spank_flex_start.so timeleft/flex-timeleft
	@python3 tools/demo.py --build $(BUILD)

test: build
	@tools/setup.sh test
	@python3 tools/run_tests.py --build $(BUILD) $(if $(T),--match '$(T)')

# Each Slurm in a bare Debian of its own; needs root or sudo. CHROOTS= is where they are kept, MIRROR= where they come from.
test-slurm-versions:
	@tools/setup.sh chroot
	@python3 tools/test_slurm_versions.py $(SUITES:%=--suite %) $(TESTS:%=--test %) $(if $(CHROOTS),--directory $(CHROOTS)) \
	  $(if $(MIRROR),--mirror $(MIRROR)) $(if $(JOBS),--jobs $(JOBS))

deb:
	@tools/setup.sh deb
	@python3 tools/build_deb.py $(if $(JOBS),--jobs $(JOBS))

# In a bare Debian of its own, like test-slurm-versions.
test-packages:
	@tools/setup.sh deb
	@tools/setup.sh chroot
	@python3 tools/test_packages.py $(if $(CHROOTS),--directory $(CHROOTS)) $(if $(MIRROR),--mirror $(MIRROR)) \
	  $(if $(JOBS),--jobs $(JOBS))

check: format tidy sanitize fuzz

check-setup:
	@tools/setup.sh check

format: check-setup
	@tools/format.sh --check

tidy: check-setup build
	@tools/tidy.sh $(BUILD)

sanitize: check-setup
	@[ -f $(BUILD)-asan/build.ninja ] || \
	  CXX=clang++ meson setup $(BUILD)-asan -Db_sanitize=address,undefined -Db_lundef=false \
	    -Dcpp_args=-fno-sanitize-recover=undefined
	@ninja -C $(BUILD)-asan
	@python3 tools/run_tests.py --build $(BUILD)-asan --suite unit --suite functional

fuzz: check-setup
	@tools/fuzz.sh $${FUZZ_SECONDS:-60}

bench-build: setup
	@[ -f $(BUILD)-release/build.ninja ] || meson setup $(BUILD)-release -Dbuildtype=release -Db_lto=true -Dtests=false
	@ninja -C $(BUILD)-release all test/bench/decide_bench test/bench/fence-tool

bench: bench-build
	@missed=0; for each in bench bench_sweeper bench_groups bench_fence; do \
	  python3 tools/$$each.py --build $(BUILD)-release || missed=1; done; exit $$missed

# Jobs, dying VMs, lost replies, restarts; then nothing may be left. A failure is repeated with its SEED.
soak: setup $(BUILD)/build.ninja
	@ninja -C $(BUILD) resume/flex-resume suspend/flex-suspend sweeper/flex-sweeper emulator/flex-gce-emulator \
	  plugin/spank_flex_start.so test/cluster/slurm-recorder test/cluster/quick_tick.so
	@python3 tools/soak.py --build $(BUILD) --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

install: build
	@meson install -C $(BUILD)

clean:
	rm -rf $(BUILD) $(BUILD)-fast $(BUILD)-asan $(BUILD)-release $(BUILD)-fuzz build-deb

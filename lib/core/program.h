// SPDX-License-Identifier: GPL-2.0-or-later
// What every program does first and the same way: file descriptors, signals, options, log, exit
// codes.
#pragma once

#include "lib/core/log.h"
#include "lib/core/result.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace flex {

// NOLINTBEGIN(readability-identifier-naming): constants, used as plain numbers
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,  ///< something failed; the sweeper picks it up
  kExitUsage = 2,   ///< bad usage or bad config
};

// NOLINTEND(readability-identifier-naming)

/// Opens /dev/null on each of the descriptors 0, 1, 2 that is closed (Slurm 22.05 closes them all),
/// unblocks the signals that slurmctld 22.05 leaves blocked, ignores SIGPIPE, forbids core dumps (a
/// token may be in memory) and sets umask 077.
void prepare_process();

struct Options {
  std::string config_file{};  ///< --config, else empty
  std::string log_file{};
  LogLevel log_level = LogLevel::Info;
  std::string hostlist{};      ///< the one positional argument
  bool is_foreground = false;  ///< logs to standard error, too
};

/// Reads `HOSTLIST --config --log-level --log-file --version --help`. Help and version are printed
/// here. An int is the exit code with which to end at once.
struct Parsed {
  std::optional<int> exit_code{};
  Options options{};
};

[[nodiscard]] Parsed parse_options(int argc,
                                   const char* const* argv,
                                   const std::string& program,
                                   const std::string& purpose);

/// The same without a HOSTLIST, for a program with options of its own, which `more` adds.
[[nodiscard]] Parsed parse_options(int argc,
                                   const char* const* argv,
                                   const std::string& program,
                                   const std::string& purpose,
                                   const std::function<void(CLI::App&)>& more);

/// --log-file, else syslog; and standard error as well where it is a terminal or --foreground asks
/// for it.
[[nodiscard]] Result<Log> open_log(const Options& options, const std::string& program);

/// The most memory this program has had so far (VmHWM), in KiB; 0 if the kernel does not say.
/// Unlike getrusage's figure it does not count what the parent had before exec.
[[nodiscard]] std::size_t peak_memory_kib();

/// An environment variable, or empty.
[[nodiscard]] std::string environment(const char* name);

/// Config to read: --config, $FLEX_START_CONFIG, or flex-start.yaml in the directory of $SLURM_CONF
/// (/etc/slurm/slurm.conf).
[[nodiscard]] std::string config_path(const Options& options);

}  // namespace flex

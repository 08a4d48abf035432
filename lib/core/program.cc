// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/program.h"

#include <CLI/CLI.hpp>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <iostream>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace flex {

void prepare_process() {
  for (int fd = 0; fd <= 2; ++fd) {
    // open(2) gives the lowest free number, and those below `fd` are taken by now.
    if (::fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
      [[maybe_unused]] const int opened = ::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
    }
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_DUMPABLE, 0);
  ::umask(077);
}

std::size_t peak_memory_kib() {
  std::array<char, 4096> text{};
  const int fd = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t got = ::read(fd, text.data(), text.size());
  ::close(fd);
  if (got <= 0) return 0;
  const std::string_view status(text.data(), static_cast<std::size_t>(got));
  const std::size_t at = status.find("VmHWM:");
  if (at == std::string_view::npos) return 0;
  const std::size_t digit = status.find_first_of("0123456789", at);
  std::size_t kib = 0;
  if (digit != std::string_view::npos) {
    std::from_chars(status.data() + digit, status.data() + status.size(), kib);
  }
  return kib;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string{} : std::string{value};
}

Parsed parse_options(int argc,
                     const char* const* argv,
                     const std::string& program,
                     const std::string& purpose) {
  Parsed parsed;
  std::vector<std::string> ignored;
  const auto options = parse_options(argc, argv, program, purpose, [&](CLI::App& app) {
    app.add_option("hostlist", parsed.options.hostlist, "nodes, as Slurm writes them: a3u-[0-15]")
        ->required();
    // Slurm adds node features as a second word for some calls; they mean nothing to us.
    app.add_option("features", ignored, "ignored")->group("");
  });
  std::string hostlist = std::move(parsed.options.hostlist);
  parsed = options;
  parsed.options.hostlist = std::move(hostlist);
  return parsed;
}

Parsed parse_options(int argc,
                     const char* const* argv,
                     const std::string& program,
                     const std::string& purpose,
                     const std::function<void(CLI::App&)>& more) {
  Parsed parsed;
  std::string level = "info";
  try {
    CLI::App app{purpose, program};
    app.set_version_flag("--version", program + " " FLEX_VERSION);
    more(app);
    app.add_option(
        "--config", parsed.options.config_file, "flex-start.yaml (default: beside slurm.conf)");
    app.add_option("--log-level", level, "debug, info, warning or error")->capture_default_str();
    app.add_option("--log-file", parsed.options.log_file, "append to this file instead of syslog");
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      const int code = app.exit(error, std::cout, std::cerr);
      parsed.exit_code = code == 0 ? kExitOk : kExitUsage;
      return parsed;
    }
  } catch (const std::exception& error) {
    std::cerr << program << ": " << error.what() << '\n';
    parsed.exit_code = kExitUsage;
    return parsed;
  }
  const auto parsed_level = parse_log_level(level);
  if (!parsed_level) {
    std::cerr << program << ": --log-level: " << parsed_level.error().what << '\n';
    parsed.exit_code = kExitUsage;
    return parsed;
  }
  parsed.options.log_level = *parsed_level;
  return parsed;
}

Result<Log> open_log(const Options& options, const std::string& program) {
  Log::Sink sink;
  if (options.log_file.empty()) {
    sink = syslog_sink(program);
  } else {
    auto file = file_sink(options.log_file, program);
    if (!file) return std::move(file).error();
    sink = std::move(*file);
  }
  if (options.is_foreground || ::isatty(STDERR_FILENO) == 1) {
    sink = [first = std::move(sink), second = stderr_sink(program)](LogLevel level,
                                                                    std::string_view line) {
      first(level, line);
      second(level, line);
    };
  }
  return Log{std::move(sink), options.log_level};
}

std::string config_path(const Options& options) {
  if (!options.config_file.empty()) return options.config_file;
  if (std::string file = environment("FLEX_START_CONFIG"); !file.empty()) return file;
  std::string slurm_conf = environment("SLURM_CONF");
  if (slurm_conf.empty()) slurm_conf = "/etc/slurm/slurm.conf";
  const std::size_t slash = slurm_conf.rfind('/');
  return (slash == std::string::npos ? std::string{"."} : slurm_conf.substr(0, slash)) +
         "/flex-start.yaml";
}

}  // namespace flex

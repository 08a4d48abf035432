// SPDX-License-Identifier: GPL-2.0-or-later
// flexctl import: a neighbour's file to flex-start.yaml.
#include "ctl/command.h"
#include "ctl/import/formats.h"
#include "lib/config/load.h"
#include "lib/config/shapes.h"
#include "lib/core/descriptor.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <iostream>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace flex {

namespace {

struct ImportCommand {
  std::string file{};
  std::string output{};
  bool is_forced = false;
  bool is_json = false;
  ImportOptions options{};
};

std::string system_error(int number) {
  return std::error_code(number, std::generic_category()).message();
}

/// One byte over the limit is enough for the parser to refuse it.
Result<std::string> read_text(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)};
  if (file.get() < 0)
    return Error{ErrorKind::Invalid,
                 fmt::format("{}: cannot be opened: {}", path, system_error(errno))};
  std::string text;
  std::array<char, 16384> buffer{};
  while (text.size() <= kMaxConfigSize) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return Error{ErrorKind::Invalid,
                   fmt::format("{}: cannot be read: {}", path, system_error(errno))};
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

/// The loader wants a file that only its owner can write.
Result<Done> write_text(const std::string& path, std::string_view text, bool is_forced) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (is_forced ? O_TRUNC : O_EXCL);
  const Descriptor file{::open(path.c_str(), flags, 0644)};
  if (file.get() < 0 && errno == EEXIST)
    return Error{ErrorKind::AlreadyExists,
                 fmt::format("{}: is there already; --force writes over it", path)};
  if (file.get() < 0)
    return Error{ErrorKind::Internal,
                 fmt::format("{}: cannot be written: {}", path, system_error(errno))};
  // Not a secret, and SlurmUser must be able to read it.
  ::fchmod(file.get(), 0644);
  while (!text.empty()) {
    const ssize_t put = ::write(file.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0)
      return Error{ErrorKind::Internal,
                   fmt::format("{}: cannot be written: {}", path, system_error(errno))};
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return Done{};
}

int complain(const std::string& what, int code) {
  std::cerr << "flexctl: " << what << '\n';
  return code;
}

void print_report(const ImportCommand& command, const Imported& imported) {
  if (command.is_json) {
    std::cerr << to_json(imported.report, imported.problems);
    return;
  }
  std::cerr << imported.report.text();
  for (const Problem& problem : imported.problems)
    std::cerr << "flexctl: " << problem.text() << '\n';
}

int run_import(const ImportCommand& command, ReadFormat read, const Log& log) {
  const std::string& cluster = command.options.cluster;
  if (!cluster.empty() && (!is_cluster_name(cluster) || !is_rfc1035(cluster)))
    return complain("--cluster: lower-case letters, digits and '-', a letter first, at most 40",
                    kExitUsage);
  const auto text = read_text(command.file);
  if (!text) return complain(text.error().what, kExitUsage);
  const Imported imported = import_text(*text, command.file, read, command.options);
  print_report(command, imported);
  log.info("imported",
           {{"file", command.file},
            {"settings", imported.report.entries.size()},
            {"problems", imported.problems.size()}});
  if (!imported.problems.empty()) return kExitUsage;
  if (command.output.empty()) {
    std::cout << imported.yaml << std::flush;
    return std::cout ? kExitOk : complain("standard output: cannot be written", kExitFailed);
  }
  const auto written = write_text(command.output, imported.yaml, command.is_forced);
  if (written) return kExitOk;
  return complain(written.error().what,
                  written.error().kind == ErrorKind::AlreadyExists ? kExitUsage : kExitFailed);
}

void add_format(CLI::App& import,
                Command& command,
                const std::string& name,
                const std::string& purpose,
                ReadFormat read) {
  CLI::App* const app = import.add_subcommand(name, purpose);
  app->fallthrough();
  const auto own = std::make_shared<ImportCommand>();
  app->add_option("file", own->file, "JSON or YAML; /dev/stdin for standard input")->required();
  app->add_option("--cluster", own->options.cluster, "the cluster's name, in front of the nodes'");
  app->add_option("--nodeset", own->options.nodesets, "only this one; may be given again")
      ->expected(1)
      ->take_all();
  app->add_option("--output", own->output, "write to this file instead of standard output");
  app->add_flag("--force", own->is_forced, "write over a file that is there");
  app->add_flag("--json", own->is_json, "the report as JSON");
  app->callback([&command, own, read] {
    command.run = [own, read](const Options&, const Log& log) {
      return run_import(*own, read, log);
    };
  });
}

}  // namespace

void add_import(CLI::App& app, Command& command) {
  CLI::App* const import =
      app.add_subcommand("import", "a neighbour's file to flex-start.yaml, with a report");
  import->fallthrough();
  import->require_subcommand(1);
  add_format(*import,
             command,
             "slurm-gcp",
             "nodesets of the Cluster Toolkit: a blueprint, a controller's config.yaml, a nodeset",
             read_slurm_gcp);
  add_format(*import,
             command,
             "vertex",
             "node pools of Slurm on Vertex AI: a cluster, or one of its pools",
             read_vertex);
}

}  // namespace flex

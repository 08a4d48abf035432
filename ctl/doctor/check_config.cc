// SPDX-License-Identifier: GPL-2.0-or-later
// flex-start.yaml: what its loader says.
#include "ctl/doctor/checks.h"

#include <fmt/format.h>

#include <charconv>
#include <sys/stat.h>

namespace flex::doctor {
namespace {

/// "FILE:12:5: text" as a warning of the loader has it; the place stays empty where there is none.
Place take_place(std::string& text, const std::string& file) {
  if (!text.starts_with(file + ":")) return {.file = file};
  Place place{.file = file};
  std::string_view rest = std::string_view(text).substr(file.size() + 1);
  const auto take = [&rest](int& number) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc{} || end == rest.data() + rest.size() || *end != ':') return false;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()) + 1);
    return true;
  };
  if (take(place.line)) take(place.column);
  text = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
  return place;
}

}  // namespace

void check_config_file(const Facts& facts, Findings& findings) {
  const FileFacts& file = facts.yaml.on_disk;
  // One that we cannot read either is a problem of its own.
  if (!file.exists || !file.may_be_read || facts.slurm.user_may(file, S_IROTH)) return;
  findings.push_back(
      {.id = "config.owner",
       .what = fmt::format("SlurmUser {} cannot read {}", facts.slurm.slurm_user_name, file.path),
       .why = "all programs run as SlurmUser, and none of them starts without it",
       .fix = "give the file to SlurmUser, or let everybody read it: there is no secret in it",
       .place = {.file = file.path},
       .hints = {fmt::format("chown {} {}", facts.slurm.slurm_user_name, file.path)}});
}

void check_config(const Facts& facts, Findings& findings) {
  for (const Problem& problem : facts.yaml.loaded.problems)
    findings.push_back(
        {.id = "config.problem",
         .what = problem.what,
         .why = "no program of slurm-flex-start starts with this file",
         .fix = problem.hint.empty() ? "correct it; see flex-start.yaml(5)" : problem.hint,
         .place = {problem.file, problem.line, problem.column}});
  if (!facts.yaml.is_good()) return;
  for (std::string warning : facts.yaml.config().warnings) {
    const Place place = take_place(warning, facts.yaml.file);
    findings.push_back({.id = "config.warning",
                        .severity = Severity::Warning,
                        .what = std::move(warning),
                        .why = "it is allowed, but seldom meant",
                        .fix = "see flex-start.yaml(5)",
                        .place = place});
  }
}

}  // namespace flex::doctor

// SPDX-License-Identifier: GPL-2.0-or-later
// ResumeProgram and its neighbours: set, there, ours, and how many nodes they get at once.
#include "ctl/doctor/checks.h"

#include <fmt/format.h>

#include <array>
#include <sys/stat.h>

namespace flex::doctor {
namespace {

struct Program {
  std::string_view id;
  std::string_view key;
  std::string_view name;
  std::string_view why;
};

constexpr std::array<Program, 3> kPrograms{{
    {"slurm.resume_program",
     "ResumeProgram",
     "flex-resume",
     "without it nobody asks Google for a job's VMs, and the job waits for ever"},
    {"slurm.suspend_program",
     "SuspendProgram",
     "flex-suspend",
     "without it VMs run on, and are paid for, until their lease ends"},
    {"slurm.resume_fail_program",
     "ResumeFailProgram",
     "flex-resume-fail",
     "without it a node that did not come up in time stays DOWN until the sweeper finds it"},
}};

/// What is wrong with the program, if anything.
struct Fault {
  std::string what{};
  bool is_mode = false;  ///< the right file, with the wrong rights
};

Fault fault_of(const SlurmFacts& slurm, const FileFacts& file, std::string_view name) {
  if (!file.path.starts_with('/')) return {fmt::format("'{}' is no full path", file.path)};
  if (!file.exists) return {fmt::format("there is no {}", file.path)};
  if (!file.is_file) return {fmt::format("{} is no file", file.path)};
  const std::string_view path = file.path;
  const std::string_view own_name = path.substr(path.rfind('/') + 1);
  if (own_name != name && file.real_name != name)
    return {fmt::format("{} is not {}", file.path, name)};
  // From 23.02 on slurmctld wants to read it, too.
  if (!slurm.user_may(file, S_IROTH | S_IXOTH))
    return {
        fmt::format("SlurmUser {} may not read and execute {}", slurm.slurm_user_name, file.path),
        true};
  if ((file.mode & (S_IWGRP | S_IWOTH)) != 0)
    return {
        fmt::format("{} may be written by its group or by all, so slurmctld refuses it", file.path),
        true};
  return {};
}

void check_program(const Facts& facts, const Program& program, Findings& findings) {
  const auto found = facts.slurm.programs.find(std::string(program.key));
  Finding finding{.id = std::string(program.id),
                  .why = std::string(program.why),
                  .place = conf_place(facts, program.key)};
  if (found == facts.slurm.programs.end()) {
    finding.what = fmt::format("{} is not set", program.key);
  } else {
    const Fault fault = fault_of(facts.slurm, found->second, program.name);
    if (fault.what.empty()) return;
    finding.what = fmt::format("{}: {}", program.key, fault.what);
    if (fault.is_mode) {
      finding.fix = "give it mode 0755";
      finding.hints = {fmt::format("chmod 0755 {}", found->second.path)};
      findings.push_back(std::move(finding));
      return;
    }
  }
  write_setting(finding, program.key, fmt::format("{}/{}", facts.program_dir, program.name));
  findings.push_back(std::move(finding));
}

void check_rate(const Facts& facts,
                std::string_view key,
                std::int64_t otherwise,
                Finding finding,
                Findings& findings) {
  const SlurmNumber rate = parse_slurm_number(facts.slurm.conf->get(key));
  const std::int64_t value = rate.is_set ? rate.value : otherwise;
  if (rate.is_infinite || value == 0) return;
  finding.what = rate.is_set ? fmt::format("{} is {}", key, facts.slurm.conf->get(key))
                             : fmt::format("{} is not set ({} a minute)", key, value);
  finding.place = conf_place(facts, key);
  write_setting(finding, key, "0");
  findings.push_back(std::move(finding));
}

}  // namespace

void check_programs(const Facts& facts, Findings& findings) {
  if (!facts.slurm.conf) return;
  for (const Program& program : kPrograms) check_program(facts, program, findings);
  check_rate(facts,
             "ResumeRate",
             300,
             {.id = "slurm.resume_rate",
              .why = "a rate splits a job's nodes over several calls, and so over several "
                     "all-or-nothing requests that wait for each other"},
             findings);
  check_rate(facts,
             "SuspendRate",
             60,
             {.id = "slurm.suspend_rate",
              .severity = Severity::Warning,
              .why = "VMs of a large job are deleted a few at a time, and the rest is paid for "
                     "meanwhile"},
             findings);
}

}  // namespace flex::doctor

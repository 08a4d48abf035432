// SPDX-License-Identifier: GPL-2.0-or-later
// Releases of Slurm with mistakes that matter for nodes that come and go.
#include "ctl/doctor/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace flex::doctor {
namespace {

constexpr Release kOldest{22, 5, 0};
constexpr std::string_view kBecomesFuture =
    "cloud nodes that are to be powered down when slurmctld restarts may become FUTURE if their "
    "names do not resolve; this is rare";

struct Pitfall {
  Release from;
  Release fixed;  ///< the first release of the line without it, or of the next line
  Severity severity;
  std::string_view what;
  Release upgrade_to;  ///< the first release that has none of it
};

constexpr std::array<Pitfall, 13> kPitfalls{{
    {{22, 5, 0},
     {22, 5, 7},
     Severity::Error,
     "nodes that are given back stay COMPLETING, and jobs start on nodes that did not register "
     "properly",
     {22, 5, 7}},
    {{22, 5, 7},
     {23, 2, 0},
     Severity::Note,
     "nodes that are being started, and whose names do not resolve, become FUTURE when slurmctld "
     "reconfigures or restarts: do so when no node is powering up ('sinfo -t powering_up'), or "
     "have "
     "their names in DNS or /etc/hosts",
     {23, 2, 5}},
    {{23, 2, 0},
     {23, 2, 5},
     Severity::Warning,
     "nodes are stuck after ResumeTimeout, and those that are being started become FUTURE when "
     "slurmctld reconfigures or restarts, if their names do not resolve",
     {23, 2, 5}},
    {{23, 11, 0},
     {23, 11, 4},
     Severity::Warning,
     "addresses of nodes are lost when slurmctld restarts while they are being started",
     {23, 11, 8}},
    {{23, 11, 4},
     {23, 11, 8},
     Severity::Note,
     "the new address of a node that was started again does not reach the others of its job",
     {23, 11, 8}},
    {{24, 5, 0},
     {24, 5, 1},
     Severity::Note,
     "the new address of a node that was started again does not reach the others of its job",
     {24, 5, 7}},
    {{24, 5, 0},
     {24, 5, 5},
     Severity::Note,
     "jobs that are requeued keep their old priority for a while",
     {24, 5, 7}},
    {{24, 5, 0},
     {24, 5, 7},
     Severity::Note,
     "jobs may be given powered-down nodes of a higher weight",
     {24, 5, 7}},
    {{24, 11, 0},
     {24, 11, 4},
     Severity::Note,
     "jobs may be given powered-down nodes of a higher weight",
     {24, 11, 4}},
    {{22, 5, 7}, {25, 5, 7}, Severity::Note, kBecomesFuture, {25, 5, 7}},
    {{25, 5, 0},
     {25, 5, 4},
     Severity::Warning,
     "slurmctld may wait for ever for ResumeProgram when it is stopped",
     {25, 5, 7}},
    {{25, 11, 0},
     {25, 11, 3},
     Severity::Warning,
     "powered-down cloud nodes are dropped from the topology",
     {25, 11, 3}},
    {{25, 11, 0}, {25, 11, 3}, Severity::Note, kBecomesFuture, {25, 11, 3}},
}};

std::string text_of(const Release& release) {
  return fmt::format("{:02}.{:02}.{}", release.year, release.month, release.patch);
}

}  // namespace

void check_version(const Facts& facts, Findings& findings) {
  const auto release = parse_release(facts.slurm.version());
  if (!release) return;
  if (*release < kOldest) {
    findings.push_back({.id = "slurm.version",
                        .what = fmt::format("Slurm is {}", text_of(*release)),
                        .why = "before 22.05 Slurm does not tell which job a node is started for",
                        .fix = "upgrade Slurm to 22.05.7 or later"});
    return;
  }
  for (const Pitfall& pitfall : kPitfalls) {
    if (*release < pitfall.from || *release >= pitfall.fixed) continue;
    findings.push_back(
        {.id = "slurm.version",
         .severity = pitfall.severity,
         .what = fmt::format("Slurm is {}", text_of(*release)),
         .why = std::string(pitfall.what),
         .fix = fmt::format("upgrade Slurm to {} or later", text_of(pitfall.upgrade_to))});
  }
}

}  // namespace flex::doctor

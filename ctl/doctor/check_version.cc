// SPDX-License-Identifier: GPL-2.0-or-later
// Releases of Slurm with mistakes that matter for nodes that come and go.
#include "ctl/doctor/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace flex::doctor {
namespace {

constexpr Release kOldest{22, 5, 0};

struct Pitfall {
  Release from;
  Release fixed;
  Severity severity;
  std::string_view what;
};

constexpr std::array<Pitfall, 9> kPitfalls{{
    {{22, 5, 0},
     {22, 5, 7},
     Severity::Error,
     "nodes that are given back stay COMPLETING, and jobs start on nodes that did not register "
     "properly"},
    {{22, 5, 7},
     {23, 2, 0},
     Severity::Note,
     "'scontrol reconfigure' while nodes are being started makes them FUTURE if their names do not "
     "resolve; restart the sweeper and the nodes after it, or upgrade to 23.02.5 or later"},
    {{23, 2, 0},
     {23, 2, 5},
     Severity::Warning,
     "nodes are stuck after ResumeTimeout, and 'scontrol reconfigure' while nodes are being "
     "started "
     "makes them FUTURE"},
    {{23, 11, 0},
     {23, 11, 4},
     Severity::Warning,
     "addresses of nodes are lost when slurmctld restarts while they are being started"},
    {{24, 5, 0},
     {24, 5, 5},
     Severity::Note,
     "jobs that are requeued keep their old priority for a while"},
    {{24, 11, 0},
     {24, 11, 4},
     Severity::Note,
     "jobs may be given powered-down nodes of a higher weight"},
    {{25, 5, 0},
     {25, 5, 4},
     Severity::Warning,
     "slurmctld may wait for ever for ResumeProgram when it is stopped"},
    {{25, 5, 4},
     {25, 5, 7},
     Severity::Note,
     "cloud nodes that are being powered down when slurmctld restarts may become FUTURE"},
    {{25, 11, 0},
     {25, 11, 3},
     Severity::Warning,
     "powered-down cloud nodes are dropped from the topology, and may become FUTURE when slurmctld "
     "restarts"},
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
         .fix = fmt::format("upgrade Slurm to {} or later", text_of(pitfall.fixed))});
  }
}

}  // namespace flex::doctor

// SPDX-License-Identifier: GPL-2.0-or-later
// The loop's looks: one for each round, again for what an action goes by, and what goes on while
// Compute Engine, or part of it, cannot be seen.
#include "sweeper/cloud_look.h"
#include "sweeper/decide.h"
#include "sweeper/kept_groups.h"
#include "sweeper/loop.h"
#include "sweeper/observe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flex {

namespace {

using Steady = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Seconds kRemainsPause = std::chrono::minutes{15};

/// Nodesets that have nodes without a VM: it may be in no group.
void add_unbacked(const Config& config, const Memory& memory, std::set<std::string>& nodesets) {
  const std::string rule = std::string(to_string(Rule::UnbackedNode)) + " ";
  for (auto each = memory.sightings.lower_bound(rule);
       each != memory.sightings.end() && each->first.starts_with(rule);
       ++each) {
    const Config::Place* place = config.find({each->first.substr(rule.size())});
    if (place != nullptr) nodesets.insert(config.nodesets[place->nodeset].name);
  }
}

}  // namespace

/// No longer than an eighth of the ResumeTimeout of what waits: its clock must be wound up in time
/// even if the look fails.
Milliseconds Loop::longest_look() const {
  constexpr int kPart = 8;
  constexpr Milliseconds kLeast{3000};
  const Milliseconds most = parts_.config.api.run_timeout;
  if (!shortest_resume_timeout_) return most;
  return std::min(most, std::max(kLeast, Milliseconds{*shortest_resume_timeout_} / kPart));
}

Result<Done> Loop::look() {
  const auto started = Steady::now();
  // While Google is away Slurm is asked first: the look may take long.
  if (status_.failures_in_a_row > 0)
    keep_jobs_waiting();
  else if (status_.is_blind && options_.rounds == 0 &&
           observe_slurm(*parts_.scheduler, shot_).has_value())
    shortest_resume_timeout_ = shortest_resume_timeout(parts_.config, shot_);
  parts_.cloud->set_deadline(started + longest_look());
  shot_.may_have_loose = memory_.loose;
  if (status_.last_round.started - memory_.remains_looked >= kRemainsPause)
    add_unbacked(parts_.config, memory_, shot_.may_have_loose);
  shot_.may_have_policies = memory_.has_policies;
  auto seen = observe(*parts_.cloud,
                      *parts_.scheduler,
                      parts_.config,
                      status_.last_round.started,
                      shot_,
                      first_progress());
  if (!seen) return seen;
  shortest_resume_timeout_ = shortest_resume_timeout(parts_.config, shot_);
  user_names_.fill(shot_.jobs.items);
  observe_accounting(*parts_.scheduler, shot_);
  return seen;
}

/// In an outage of Compute Engine the jobs that wait for it must not fall to ResumeTimeout.
void Loop::keep_jobs_waiting() {
  shot_.now = status_.last_round.started;
  if (!observe_slurm(*parts_.scheduler, shot_)) return;
  shortest_resume_timeout_ = shortest_resume_timeout(parts_.config, shot_);
  const auto actions = decide_blindly(parts_.config, shot_, memory_).actions;
  if (!actions.empty()) (void)carry_out(actions);
}

/// The first of several rounds that do not see everything is a warning.
void Loop::note_unseen() {
  partial_rounds_ = shot_.unseen.empty() ? 0 : partial_rounds_ + 1;
  if (shot_.unseen.empty()) return;
  std::vector<std::string> names;
  for (const auto& [nodeset, error] : shot_.unseen) names.push_back(nodeset);
  const std::string& why = shot_.unseen.begin()->second.what;
  status_.last_round.error = why;
  status_.why = fmt::format("nodesets {} cannot be seen: {}", fmt::join(names, ", "), why);
  const std::initializer_list<Field> fields = {
      {"round", status_.last_round.number},
      {"nodesets", fmt::format("{}", fmt::join(names, ","))},
      {"why", why},
      {"then", "nothing is decided about them; the others go on"}};
  if ((partial_rounds_ & (partial_rounds_ - 1)) == 0)
    log_.warning("incomplete_view", fields);
  else
    log_.debug("incomplete_view", fields);
}

/// What is to be done goes by lists of this round: those that are older are read first, then Slurm
/// again, and all is decided anew.
Decision Loop::decide_freshly() {
  constexpr int kMost = 3;
  const bool is_any_kept = std::any_of(
      shot_.groups.begin(), shot_.groups.end(), [](const auto& group) { return group.is_kept; });
  const Memory before = is_any_kept ? memory_ : Memory{};
  Decision decision = decide(parts_.config, shot_, memory_);
  for (int i = 0; i < kMost; ++i) {
    const std::set<MigName> stale = kept_groups_of(parts_.config, shot_, decision.actions);
    if (stale.empty()) return decision;
    parts_.cloud->set_deadline(Steady::now() + longest_look());
    read_groups(*parts_.cloud, shot_, stale);
    // Without Slurm's present word nothing is done; the next round sees it all again.
    memory_ = before;
    if (!observe_slurm(*parts_.scheduler, shot_)) return {};
    user_names_.fill(shot_.jobs.items);
    observe_accounting(*parts_.scheduler, shot_);
    decision = decide(parts_.config, shot_, memory_);
  }
  if (kept_groups_of(parts_.config, shot_, decision.actions).empty()) return decision;
  memory_ = before;
  return {};
}

/// What nobody needs is looked for after the work, now and then, and holds nothing up.
void Loop::look_for_remains() {
  if (!shot_.unseen.empty() || options_.is_dry_run) return;
  memory_.loose.clear();
  for (const SweptGroup& group : shot_.groups) {
    if (group.group.kind == GroupKind::Loose && !group.instances.empty())
      memory_.loose.insert(group.nodeset);
  }
  memory_.has_policies = !shot_.policies.empty();
  if (shot_.now >= memory_.remains_looked && shot_.now - memory_.remains_looked < kRemainsPause)
    return;
  constexpr Milliseconds kPatience{2000};
  parts_.cloud->set_deadline(Steady::now() + std::min(kPatience, longest_look()));
  const Remains found = flex::look_for_remains(*parts_.cloud, shot_.cluster);
  memory_.loose.insert(found.loose.begin(), found.loose.end());
  memory_.has_policies = memory_.has_policies || found.has_policies;
  if (found.is_whole) memory_.remains_looked = shot_.now;
}

}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
// unused_policy: a workload policy of ours whose group is gone, or never came to be.
#include "sweeper/rules.h"

#include <set>
#include <string>

namespace flex {

namespace {

/// Its job waits for nodes: the group may be on its way.
bool is_about_to_be_used(const Round& round, const Policy& policy) {
  const Job* const job = round.picture.find_job(described_number(policy.description, "job"));
  return job != nullptr && job->holds_nodes();
}

}  // namespace

void unused_policy(Round& round) {
  std::set<std::string> used;
  for (const SweptGroup& group : round.shot.groups) {
    used.insert(group.group.name.text);
    used.insert(group.group.policy);
  }
  // Not ours to judge, but it may use the policy.
  for (const Group& group : round.shot.foreign_groups) used.insert(group.policy);
  for (const Policy& policy : round.shot.policies) {
    if (used.contains(policy.name) || is_about_to_be_used(round, policy)) continue;
    const Sighting& seen = round.see(Rule::UnusedPolicy, key_of(policy));
    // flex-resume makes the policy before the group.
    if (!seen.is_twice() || seen.age() < round.config.sweeper.empty_mig_grace) continue;
    if (round.spend(1) == 0) return;
    round.add(Rule::UnusedPolicy, "no group uses it", DeletePolicy{.name = policy.name});
  }
}

}  // namespace flex

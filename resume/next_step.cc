// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/next_step.h"

#include "lib/gce/errors.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

namespace flex {

std::vector<RequestOutcome> take_hopeless(const Config& config,
                                          std::vector<RequestOutcome>& outcomes,
                                          std::size_t step) {
  std::unordered_set<NodeName> asked;
  for (const RequestOutcome& outcome : outcomes) {
    if (outcome.result != RequestResult::Failed)
      asked.insert(outcome.request.spec.nodes.begin(), outcome.request.spec.nodes.end());
  }
  const auto is_hopeless = [&](const RequestOutcome& outcome) {
    const NodeName& first = outcome.request.spec.nodes.front();
    const Config::Place* const place = config.find(first);
    return outcome.result == RequestResult::Failed && is_of_zone(outcome.error) &&
           !asked.contains(first) && place != nullptr &&
           step <= config.nodesets[place->nodeset].on_stockout.size();
  };
  const auto rest = std::stable_partition(
      outcomes.begin(), outcomes.end(), [&](const auto& outcome) { return !is_hopeless(outcome); });
  std::vector<RequestOutcome> taken(std::make_move_iterator(rest),
                                    std::make_move_iterator(outcomes.end()));
  outcomes.erase(rest, outcomes.end());
  return taken;
}

Demand part_of(const Demand& demand, const std::vector<RequestOutcome>& outcomes) {
  std::unordered_set<NodeName> nodes;
  for (const RequestOutcome& outcome : outcomes)
    nodes.insert(outcome.request.spec.nodes.begin(), outcome.request.spec.nodes.end());
  const auto is_other = [&](const NodeName& node) { return !nodes.contains(node); };
  Demand part = demand;
  for (Demand::JobNodes& wanted : part.jobs) std::erase_if(wanted.nodes, is_other);
  std::erase_if(part.jobs, [](const Demand::JobNodes& wanted) { return wanted.nodes.empty(); });
  std::erase_if(part.jobless, is_other);
  part.unwanted.clear();
  part.foreign.clear();
  return part;
}

}  // namespace flex

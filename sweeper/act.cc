// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/act.h"

#include "lib/slurm/hostlist.h"

namespace flex {

namespace {

std::string number_or_nothing(std::size_t number) {
  return number == 0 ? std::string{} : std::to_string(number);
}

}  // namespace

void log_action(const Log& log, const Action& action) {
  const std::vector<NodeName> nodes = nodes_of(action);
  const auto* tell = std::get_if<TellJob>(&action.what);
  const auto* warn = std::get_if<WarnJob>(&action.what);
  std::string text = tell == nullptr ? std::string{} : tell->comment;
  if (warn != nullptr) text = warn->comment;
  log.info("action",
           {{"rule", to_string(action.rule)},
            {"what", kind_text(action)},
            {"target", target_of(action)},
            {"job", number_or_nothing(job_of(action))},
            {"nodes", fold_hostlist(nodes)},
            {"n", number_or_nothing(nodes.size())},
            {"text", text},
            {"why", action.why}});
}

ActReport act(Actor& actor, const std::vector<Action>& actions) {
  ActReport report;
  if (actions.empty() || actor.should_stop()) return report;
  std::vector<Action> urgent;
  std::vector<Action> rest;
  for (const Action& action : actions) {
    log_action(actor.log, action);
    // A job whose VM is gone, or is about to go, does not wait until Google has answered all
    // requests.
    const bool is_urgent = action.rule == Rule::UnbackedNode || action.rule == Rule::LeaseEnd;
    (is_urgent ? urgent : rest).push_back(action);
  }
  act_on_slurm(actor, urgent, report);
  act_on_cloud(actor, rest, report);
  if (!actor.should_stop()) act_on_slurm(actor, rest, report);
  return report;
}

}  // namespace flex

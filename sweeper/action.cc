// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/action.h"

#include <fmt/format.h>

namespace flex {

namespace {

template <class... Cases>
struct Match : Cases... {
  using Cases::operator()...;
};

template <class... Cases>
Match(Cases...) -> Match<Cases...>;

}  // namespace

std::string_view to_string(Rule rule) {
  switch (rule) {
    case Rule::UnrequestedNode:
      return "unrequested_node";
    case Rule::FailedRequest:
      return "failed_request";
    case Rule::StaleRequest:
      return "stale_request";
    case Rule::ProvisionTimeout:
      return "provision_timeout";
    case Rule::KeepWaiting:
      return "keep_waiting";
    case Rule::BootTimeout:
      return "boot_timeout";
    case Rule::UnbackedNode:
      return "unbacked_node";
    case Rule::OrphanInstance:
      return "orphan_instance";
    case Rule::StaticNode:
      return "static_node";
    case Rule::EmptyMig:
      return "empty_mig";
    case Rule::FinishedRequest:
      return "finished_request";
    case Rule::JobNote:
      return "job_note";
    case Rule::NodeNote:
      return "node_note";
    case Rule::LeaseEnd:
      return "lease_end";
    case Rule::UnhealthyNode:
      return "unhealthy_node";
    case Rule::UnusedPolicy:
      return "unused_policy";
    case Rule::SurplusRequest:
      return "surplus_request";
    case Rule::Stockout:
      return "on_stockout";
    case Rule::Resubmit:
      return "resubmit";
    case Rule::UnusableNode:
      return "unusable_node";
    case Rule::IncompleteJob:
      return "incomplete_job";
    case Rule::NoLongerEligible:
      return "no_longer_eligible";
    case Rule::Pause:
      return "pause";
    case Rule::ByHand:
      return "by_hand";
  }
  return "unknown";
}

std::string_view kind_text(const Action& action) {
  return std::visit(
      Match{[](const CancelRequest&) -> std::string_view { return "cancel_request"; },
            [](const DeleteRequest&) -> std::string_view { return "delete_request"; },
            [](const DeleteInstances&) -> std::string_view { return "delete_instances"; },
            [](const DeleteGroup&) -> std::string_view { return "delete_group"; },
            [](const AskForNodes&) -> std::string_view { return "ask"; },
            [](const GiveJobBack&) -> std::string_view { return "give_job_back"; },
            [](const UpdateNodes& update) -> std::string_view { return to_string(update.request); },
            [](const RequeueJob& requeue) -> std::string_view {
              return requeue.hold ? "requeue_and_hold" : "requeue";
            },
            [](const CancelJob&) -> std::string_view { return "cancel_job"; },
            [](const NoteLease& note) -> std::string_view {
              return note.lease ? "write_extra" : "clear_extra";
            },
            [](const NoteDrain& note) -> std::string_view {
              return note.reason.empty() ? "forget_drain" : "note_drain";
            },
            [](const TellJob&) -> std::string_view { return "comment"; },
            [](const WarnJob&) -> std::string_view { return "warn_job"; },
            [](const SetReservation& set) -> std::string_view {
              return set.is_new ? "create_reservation" : "update_reservation";
            },
            [](const DeleteReservation&) -> std::string_view { return "delete_reservation"; },
            [](const DeletePolicy&) -> std::string_view { return "delete_policy"; }},
      action.what);
}

std::vector<NodeName> nodes_of(const Action& action) {
  using Nodes = std::vector<NodeName>;
  return std::visit(Match{[](const CancelRequest& cancel) { return cancel.nodes; },
                          [](const DeleteRequest&) { return Nodes{}; },
                          [](const DeleteInstances& doomed) {
                            Nodes names;
                            for (const Instance& instance : doomed.instances)
                              names.push_back(instance.name);
                            return names;
                          },
                          [](const DeleteGroup&) { return Nodes{}; },
                          [](const AskForNodes& ask) {
                            Nodes names = ask.demand.jobless;
                            for (const Demand::JobNodes& job : ask.demand.jobs)
                              names.insert(names.end(), job.nodes.begin(), job.nodes.end());
                            return names;
                          },
                          [](const GiveJobBack& back) { return back.job.nodes; },
                          [](const UpdateNodes& update) { return update.nodes; },
                          [](const RequeueJob& requeue) { return requeue.nodes; },
                          [](const CancelJob& cancel) { return cancel.nodes; },
                          [](const NoteLease& note) { return note.nodes; },
                          [](const NoteDrain& note) { return note.nodes; },
                          [](const TellJob&) { return Nodes{}; },
                          [](const WarnJob&) { return Nodes{}; },
                          [](const SetReservation& set) { return set.reservation.nodes; },
                          [](const DeleteReservation&) { return Nodes{}; },
                          [](const DeletePolicy&) { return Nodes{}; }},
                    action.what);
}

JobId job_of(const Action& action) {
  if (const auto* cancel = std::get_if<CancelRequest>(&action.what)) return cancel->job;
  if (const auto* back = std::get_if<GiveJobBack>(&action.what)) return back->job.job.id;
  if (const auto* requeue = std::get_if<RequeueJob>(&action.what)) return requeue->job;
  if (const auto* cancel = std::get_if<CancelJob>(&action.what)) return cancel->job;
  if (const auto* tell = std::get_if<TellJob>(&action.what)) return tell->job;
  if (const auto* warn = std::get_if<WarnJob>(&action.what)) return warn->job;
  if (const auto* ask = std::get_if<AskForNodes>(&action.what);
      ask != nullptr && ask->demand.jobs.size() == 1)
    return ask->demand.jobs.front().job.id;
  return 0;
}

std::string target_of(const Action& action) {
  if (const auto* cancel = std::get_if<CancelRequest>(&action.what))
    return fmt::format("{}/{}", cancel->group, cancel->request);
  if (const auto* request = std::get_if<DeleteRequest>(&action.what))
    return fmt::format("{}/{}", request->group, request->request);
  if (const auto* doomed = std::get_if<DeleteInstances>(&action.what)) return doomed->group.text;
  if (const auto* group = std::get_if<DeleteGroup>(&action.what)) return group->group.text;
  if (const auto* set = std::get_if<SetReservation>(&action.what)) return set->reservation.name;
  if (const auto* gone = std::get_if<DeleteReservation>(&action.what)) return gone->name;
  if (const auto* policy = std::get_if<DeletePolicy>(&action.what)) return policy->name;
  return {};
}

}  // namespace flex

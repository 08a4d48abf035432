// SPDX-License-Identifier: GPL-2.0-or-later
// flex-suspend: Slurm's SuspendProgram. Deletes the nodes' VMs or cancels the requests that they
// wait in, and exits. Under the name flex-resume-fail it is Slurm's ResumeFailProgram: the same,
// and the nodes are put back to use.
#include "lib/core/clock.h"
#include "lib/core/job_note.h"
#include "lib/core/log.h"
#include "lib/core/program.h"
#include "lib/fleet/power_down.h"
#include "lib/fleet/queue.h"
#include "lib/fleet/session.h"
#include "lib/fleet/view.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/node_state.h"
#include "suspend/apply.h"
#include "suspend/events.h"
#include "suspend/plan.h"

#include <chrono>
#include <future>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace flex {

namespace {

/// A request that is just being created cannot be cancelled yet. It is looked at again this often
/// and this long, then left to the sweeper.
constexpr std::chrono::milliseconds kLookAgain{1000};
constexpr int kMostLooks = 10;

void log_plan(const Log& log, const SuspendPlan& plan) {
  if (!plan.foreign.empty()) {
    log.warning("foreign_nodes",
                {{"nodes", fold_hostlist(plan.foreign)},
                 {"n", plan.foreign.size()},
                 {"why", "in no nodeset of flex-start.yaml"},
                 {"then", "left alone"}});
  }
  if (!plan.gone.empty()) {
    log.info("already_gone", {{"nodes", fold_hostlist(plan.gone)}, {"n", plan.gone.size()}});
  }
  for (const KeptRequest& kept : plan.kept) {
    log.warning(
        "request_kept",
        {{"group", kept.group},
         {"request", kept.request},
         {"nodes", fold_hostlist(kept.leaving)},
         {"why", fmt::format("{} other nodes of the request are still wanted", kept.others)},
         {"then", "the sweeper deletes the VMs that nobody wants when they come"}});
  }
  for (const UnseenNodes& unseen : plan.unseen) {
    log.error("not_suspended",
              {{"nodes", fold_hostlist(unseen.nodes)},
               {"n", unseen.nodes.size()},
               {"kind", to_string(unseen.error.kind)},
               {"why", unseen.error.what},
               {"then", "the sweeper does it"}});
  }
}

void log_outcome(const Log& log, const SuspendOutcome& outcome) {
  for (const PlannedDeletion& deletion : outcome.deleted) {
    std::vector<NodeName> names;
    for (const Instance& instance : deletion.instances) names.push_back(instance.name);
    log.info("deleted",
             {{"group", deletion.group}, {"nodes", fold_hostlist(names)}, {"n", names.size()}});
  }
  for (const PlannedCancel& cancel : outcome.cancelled) {
    log.info("cancelled",
             {{"group", cancel.group},
              {"request", cancel.request},
              {"job", cancel.job},
              {"nodes", fold_hostlist(cancel.nodes)},
              {"n", cancel.nodes.size()}});
  }
  for (const SuspendFailure& failure : outcome.failed) {
    log.error("suspend_failed",
              {{"group", failure.group},
               {"nodes", fold_hostlist(failure.nodes)},
               {"n", failure.nodes.size()},
               {"kind", to_string(failure.error.kind)},
               {"why", failure.error.what},
               {"then", "the sweeper does it"}});
  }
}

/// Tells the history what was taken away. slurmctld is asked where it is kept while Compute Engine
/// is looked at: neither answer depends on the other.
class Teller {
 public:
  Teller(Session& session, bool is_resume_fail, const std::vector<NodeName>& nodes, const Log& log)
      : session_(session), log_(log), state_dir_(std::async(std::launch::async, [&session] {
          return find_state_dir(session.config, *session.scheduler);
        })) {
    like_.program = is_resume_fail ? "flex-resume-fail" : "flex-suspend";
    first_ = suspend_event(stamped(), nodes, is_resume_fail);
  }

  void tell(const SuspendOutcome& outcome) { keep(events_of(stamped(), outcome)); }

  /// libslurm does one thing at a time: to be called before slurmctld is asked for anything else.
  void settle() {
    if (!state_dir_.valid()) return;
    auto state_dir = state_dir_.get();
    if (state_dir) session_.state_dir = std::move(*state_dir);
  }

  void tell_put_back(const std::vector<NodeName>& nodes, const std::string& why) {
    keep({put_back_event(stamped(), nodes, why)});
  }

 private:
  Event stamped() {
    like_.when = SystemClock{}.now();
    return like_;
  }

  void keep(std::vector<Event> events) {
    settle();
    if (first_) events.insert(events.begin(), *std::exchange(first_, std::nullopt));
    keep_in_history(session_.state_dir, events, log_);
  }

  Session& session_;
  const Log& log_;
  Event like_{};
  std::optional<Event> first_{};
  std::future<Result<std::string>> state_dir_{};
};

struct Totals {
  std::size_t done = 0;
  std::size_t failed = 0;
  std::map<JobId, std::set<NodeName>> cancelled_jobs{};
};

/// Without the nodes that slurmctld is bringing up again by now: what is there is the next job's.
std::vector<NodeName> still_leaving(Session& session, std::vector<NodeName> nodes, const Log& log) {
  const auto all = session.scheduler->load_nodes();
  if (!all) {
    log.warning("slurmctld_unreachable",
                {{"why", all.error().what}, {"then", "left to the sweeper"}});
    return {};
  }
  std::vector<NodeName> wanted;
  for (const Node& node : *all) {
    const bool is_wanted = is_powering_up(node) || is_allocated(node);
    if (is_wanted && std::erase(nodes, node.name) > 0) wanted.push_back(node.name);
  }
  if (!wanted.empty())
    log.info("wanted_again", {{"nodes", fold_hostlist(wanted)}, {"n", wanted.size()}});
  return nodes;
}

/// Look, plan, act; and again for the nodes whose request was just changing.
Totals take_away(Session& session,
                 const std::vector<NodeName>& all,
                 Teller& teller,
                 const Log& log) {
  Totals totals;
  std::vector<NodeName> nodes = all;
  for (int looks = 1; !nodes.empty(); ++looks) {
    FleetView fleet = fetch_fleet(
        *session.cloud, session.config, session.cluster, nodes, [&](const auto& /*owners*/) {
          teller.settle();
          const auto jobs = session.scheduler->load_all_jobs();
          // Without them what waits in the queue is the sweeper's to cancel.
          return jobs ? jobs_of_nodes(*jobs, nodes) : std::vector<JobId>{};
        });
    // Before a node is said to be gone: whatever mode has made its VM.
    add_loose(*session.cloud,
              session.config,
              session.cluster,
              nodesets_without_trace(session.config, nodes, fleet),
              fleet);
    const SuspendPlan plan = plan_suspend(session.config, session.cluster, nodes, fleet);
    log_plan(log, plan);
    const SuspendOutcome outcome = apply_suspend(*session.cloud, plan);
    log_outcome(log, outcome);
    teller.tell(outcome);
    totals.done += outcome.deleted.size() + outcome.cancelled.size();
    totals.failed += outcome.failed.size() + plan.unseen.size() + plan.kept.size();
    for (const PlannedCancel& cancel : outcome.cancelled) {
      if (cancel.job == 0) continue;
      totals.cancelled_jobs[cancel.job].insert(cancel.nodes.begin(), cancel.nodes.end());
    }
    nodes = outcome.again;
    if (nodes.empty()) break;
    if (looks >= kMostLooks) {
      log.error("suspend_failed",
                {{"nodes", fold_hostlist(nodes)},
                 {"n", nodes.size()},
                 {"why", "their request is still being created and cannot be cancelled yet"},
                 {"then", "the sweeper does it"}});
      ++totals.failed;
      break;
    }
    std::this_thread::sleep_for(kLookAgain);
    nodes = still_leaving(session, nodes, log);
  }
  return totals;
}

/// After ResumeTimeout: the jobs are told, and the nodes, which Slurm left DOWN, are put back by
/// POWER_DOWN (Slurm runs SuspendProgram and, with idle_on_node_suspend, makes them IDLE).
bool put_back(Session& session,
              const std::vector<NodeName>& nodes,
              const Totals& totals,
              Teller& teller,
              const Log& log) {
  bool ok = true;
  std::vector<JobId> ids;
  for (const auto& [job, members] : totals.cancelled_jobs) ids.push_back(job);
  if (!ids.empty()) {
    const auto jobs = session.scheduler->load_jobs(ids);
    if (!jobs) {
      log.warning("comment_failed", {{"why", jobs.error().what}});
      ok = false;
    }
    for (const Job& job : jobs ? *jobs : std::vector<Job>{}) {
      if (job.is_finished) continue;
      const std::set<NodeName>& members = totals.cancelled_jobs.at(job.id);
      const std::string note = note_resume_timeout(fold_hostlist({members.begin(), members.end()}));
      auto told = session.scheduler->set_admin_comment(job.id, with_note(job.admin_comment, note));
      if (told) continue;
      log.warning("comment_failed", {{"job", job.id}, {"why", told.error().what}});
      ok = false;
    }
  }
  std::vector<NodeName> ours;
  for (const NodeName& node : nodes) {
    if (session.config.find(node) != nullptr) ours.push_back(node);
  }
  if (ours.empty()) return ok;
  const std::string folded = fold_hostlist(ours);
  const std::string why = "no VM within ResumeTimeout";
  // One that has been woken since is wanted again.
  const TakenDown taken = take_down(*session.scheduler,
                                    session.config,
                                    {.request = NodeRequest::PowerDown,
                                     .nodes = ours,
                                     .reason = "flex: " + why,
                                     .only_free = true});
  if (!taken.done.empty()) {
    log.info("put_back",
             {{"nodes", fold_hostlist(taken.done)}, {"n", taken.done.size()}, {"why", why}});
    teller.tell_put_back(taken.done, why);
  }
  if (!taken.result) {
    log.error("put_back_failed",
              {{"nodes", folded}, {"n", ours.size()}, {"why", taken.result.error().what}});
    ok = false;
  }
  return ok;
}

int suspend(const Options& options, bool is_resume_fail, const Log& log) {
  const auto started = std::chrono::steady_clock::now();
  auto nodes = expand_hostlist(options.hostlist);
  if (!nodes) {
    log.error("bad_hostlist", {{"why", nodes.error().what}});
    std::cerr << nodes.error().what << '\n';
    return kExitUsage;
  }
  auto session = open_session(options, log);
  if (!session) return kExitUsage;
  Teller teller{*session, is_resume_fail, *nodes, log};
  const Totals totals = take_away(*session, *nodes, teller, log);
  teller.settle();
  const bool ok = !is_resume_fail || put_back(*session, *nodes, totals, teller, log);
  log_summary(log,
              *session,
              {.event = is_resume_fail ? "resume_failed" : "suspended",
               .nodes = *nodes,
               .done = totals.done,
               .failed = totals.failed,
               .started = started});
  return ok && totals.failed == 0 ? kExitOk : kExitFailed;
}

}  // namespace

}  // namespace flex

int main(int argc, char** argv) {
  flex::prepare_process();
  const std::string_view path = argc > 0 ? argv[0] : "";
  const bool is_resume_fail = path.substr(path.rfind('/') + 1) == "flex-resume-fail";
  const std::string program = is_resume_fail ? "flex-resume-fail" : "flex-suspend";
  const auto parsed =
      flex::parse_options(argc,
                          argv,
                          program,
                          is_resume_fail ? "Slurm ResumeFailProgram: cancels what nodes that "
                                           "missed ResumeTimeout wait for and puts them back"
                                         : "Slurm SuspendProgram: deletes the Flex Start VMs of "
                                           "the given nodes, or cancels their request");
  if (parsed.exit_code) return *parsed.exit_code;
  const auto log = flex::open_log(parsed.options, program);
  if (!log) {
    std::cerr << program << ": " << log.error().what << '\n';
    return flex::kExitUsage;
  }
  return flex::suspend(parsed.options, is_resume_fail, *log);
}

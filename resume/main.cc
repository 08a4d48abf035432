// SPDX-License-Identifier: GPL-2.0-or-later
// flex-resume: Slurm's ResumeProgram. Turns nodes and the jobs that wait for them into Flex Start
// requests, and exits.
#include "lib/config/load.h"
#include "lib/core/clock.h"
#include "lib/core/log.h"
#include "lib/core/program.h"
#include "lib/fleet/loose.h"
#include "lib/fleet/pause.h"
#include "lib/fleet/power_down.h"
#include "lib/fleet/queue.h"
#include "lib/fleet/session.h"
#include "lib/fleet/view.h"
#include "lib/provision/asked_nodes.h"
#include "lib/provision/node_use.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/node_state.h"
#include "resume/admit.h"
#include "resume/apply.h"
#include "resume/demand.h"
#include "resume/events.h"
#include "resume/next_step.h"
#include "resume/plan.h"
#include "resume/request.h"
#include "resume/wanted.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace flex {

namespace {

constexpr std::size_t kMostLines = 20;

/// The resume file's contents, read before anything else: it lives only as long as slurmctld wants.
struct ResumeFile {
  bool is_given = false;
  Result<std::string> text = std::string{};
};

ResumeFile read_first() {
  ResumeFile file;
  const std::string path = environment("SLURM_RESUME_FILE");
  if (path.empty()) return file;
  file.is_given = true;
  file.text = read_resume_file(path);
  return file;
}

/// The parsed file; nothing if there is none or if it is bad, which is logged: slurmctld is asked
/// for the jobs then.
std::optional<ResumeRequest> parse_file(const ResumeFile& file, const Log& log, bool& ok) {
  if (!file.is_given) return std::nullopt;
  auto request =
      file.text ? parse_resume_file(*file.text) : Result<ResumeRequest>{file.text.error()};
  if (request) return std::move(*request);
  log.error("bad_resume_file",
            {{"why", request.error().what},
             {"then", "going on with the nodes of the command line and slurmctld's jobs"}});
  ok = false;
  return std::nullopt;
}

/// The jobs that matter: those the file names, and all jobs where that leaves nodes over.
Result<std::vector<Job>> load_jobs_for(Scheduler& scheduler,
                                       const std::optional<ResumeRequest>& request,
                                       const std::vector<NodeName>& nodes) {
  if (request && !request->jobs.empty()) {
    std::vector<JobId> ids;
    for (const ResumeRequest::JobEntry& entry : request->jobs) ids.push_back(entry.id);
    auto jobs = scheduler.load_jobs(ids);
    if (!jobs || covers(*request, nodes, *jobs)) return jobs;
  }
  return scheduler.load_all_jobs();
}

/// Who waits for their turn, as the sweeper says.
QueueFile find_waiting(Session& session) {
  auto state_dir = find_state_dir(session.config, *session.scheduler);
  if (!state_dir) return {};
  session.state_dir = std::move(*state_dir);
  return load_queue(session.state_dir, SystemClock{}.now(), session.config.sweeper.interval);
}

/// What the history is told, as soon as it has happened.
struct Teller {
  const Session& session;
  const Log& log;

  [[nodiscard]] static Event now() {
    Event event;
    event.when = SystemClock{}.now();
    event.program = "flex-resume";
    return event;
  }

  void tell(const std::vector<Event>& events) const {
    keep_in_history(session.state_dir, events, log);
  }

  /// What was asked for, and what was refused.
  void tell(const std::vector<RequestOutcome>& outcomes,
            const std::vector<Refusal>& refusals) const {
    std::vector<Event> events;
    for (const RequestOutcome& outcome : outcomes) events.push_back(event_of(now(), outcome));
    for (const Refusal& refusal : refusals) events.push_back(event_of(now(), refusal));
    tell(events);
  }
};

/// What this run knows before it asks.
struct Look {
  TimePoint began{};
  const FleetView& fleet;
  const QueueFile& queue;
  const Demand& demand;
};

void tell_left(const std::vector<LeftAsk>& left, const Demand& demand, const Teller& teller) {
  std::size_t lines = 0;
  for (const LeftAsk& ask : left) {
    teller.tell(left_events(Teller::now(), demand, ask.nodes, ask.why));
    if (++lines > kMostLines) continue;
    teller.log.info("left_to_sweeper",
                    {{"job", ask.job},
                     {"nodes", fold_hostlist(ask.nodes)},
                     {"n", ask.nodes.size()},
                     {"why", ask.why},
                     {"then", "the sweeper asks, longest waiting first"}});
  }
  if (lines > kMostLines) teller.log.info("and_more", {{"n", lines - kMostLines}});
}

/// Past those who wait, or beyond what the region and the nodesets have room for, nothing is asked
/// for: the sweeper does so when the turn has come.
std::vector<LeftAsk> admit(const Look& look,
                           std::set<NodeName> asked,
                           const Teller& teller,
                           ResumePlan& plan) {
  const Session& session = teller.session;
  const std::size_t active = count_active_requests(look.fleet);
  const AdmissionLimits limits{.region = session.config.region,
                               .most = session.config.api.max_active_requests,
                               .active = active - std::min(active, plan.cancels.size()),
                               .waiting = look.queue.waiting,
                               .nodesets = find_room({.config = session.config,
                                                      .cluster = session.cluster,
                                                      .fleet = look.fleet,
                                                      .asked = std::move(asked),
                                                      .queue = look.queue})};
  return admit_plan(session.config, look.demand, limits, SystemClock{}.now(), plan);
}

/// The same where nodes count for max_nodes: no other program asks for more of them meanwhile.
/// True if something was written down that has to be settled.
bool admit_and_reserve(const Look& look, AskedFile& file, const Teller& teller, ResumePlan& plan) {
  const Config& config = teller.session.config;
  if (limited_nodes(config, plan).empty()) {
    tell_left(admit(look, {}, teller, plan), look.demand, teller);
    return false;
  }
  const TimePoint now = SystemClock{}.now();
  std::vector<LeftAsk> left;
  const ResumePlan whole = plan;
  const auto reserved = file.reserve(now, [&](const AskedNodes& asked) {
    left = admit(look, find_unseen(asked, look.began, now), teller, plan);
    return limited_nodes(config, plan);
  });
  if (!reserved) {
    const std::string why = fmt::format("max_nodes cannot be kept without the state directory: {}",
                                        reserved.error().what);
    plan = whole;
    tell_left(leave_limited(config, look.demand, why, plan), look.demand, teller);
    left = admit(look, {}, teller, plan);
  }
  tell_left(left, look.demand, teller);
  return reserved && !limited_nodes(config, plan).empty();
}

/// What the others need not count any more, or have to count for a while.
void settle(AskedFile& file, const std::vector<RequestOutcome>& outcomes, const Teller& teller) {
  const auto settled = file.settle(SystemClock{}.now(), answers_of(outcomes));
  if (settled) return;
  teller.log.warning("asked_not_settled",
                     {{"why", settled.error().what},
                      {"then", "the nodes count for max_nodes for a quarter of an hour"}});
}

/// Powering down takes a pause's drain away for a moment, in which a job may get the node.
void leave_paused(const Demand& demand, ResumePlan& plan, const Teller& teller) {
  if (teller.session.state_dir.empty()) return;
  const auto pauses = load_pauses(teller.session.state_dir);
  if (!pauses) return;
  for (const auto& [nodeset, pause] : *pauses) {
    const std::vector<NodeName> left = leave_nodeset(demand, nodeset, plan);
    if (left.empty()) continue;
    const std::string why = fmt::format("nodeset {} is {}", nodeset, pause.why());
    teller.log.info("left_to_sweeper",
                    {{"nodes", fold_hostlist(left)},
                     {"n", left.size()},
                     {"why", why},
                     {"then", "the sweeper gives them back"}});
    teller.tell(left_events(Teller::now(), demand, left, why));
  }
}

void log_outcomes(const Log& log, const std::vector<RequestOutcome>& outcomes) {
  std::size_t lines = 0;
  for (const RequestOutcome& outcome : outcomes) {
    const RequestSpec& spec = outcome.request.spec;
    const std::string nodes = fold_hostlist(spec.nodes);
    if (outcome.result == RequestResult::Unwanted) {
      if (++lines > kMostLines) continue;
      log.info("left_to_sweeper",
               {{"job", outcome.request.job},
                {"nodes", nodes},
                {"n", spec.nodes.size()},
                {"why", kNotWantedAnyMore},
                {"then", "nothing is asked for"}});
      continue;
    }
    if (outcome.result == RequestResult::Failed && waits_for_turn(outcome.error)) {
      if (++lines > kMostLines) continue;
      log.info("left_to_sweeper",
               {{"job", outcome.request.job},
                {"nodes", nodes},
                {"n", spec.nodes.size()},
                {"why", outcome.error.what},
                {"then", "the sweeper asks, longest waiting first"}});
      continue;
    }
    if (outcome.result == RequestResult::Failed) {
      log.error(
          "request_failed",
          {{"job", outcome.request.job},
           {"nodes", nodes},
           {"n", spec.nodes.size()},
           {"group", spec.group},
           {"kind", to_string(outcome.error.kind)},
           {"why", outcome.error.what},
           {"then",
            is_permanent(outcome.error) ? "the job is given back" : "the sweeper asks again"}});
      continue;
    }
    if (++lines > kMostLines) continue;
    log.info(outcome.result == RequestResult::Requested ? "requested" : "requested_before",
             {{"job", outcome.request.job},
              {"nodes", nodes},
              {"n", spec.nodes.size()},
              {"run_s", spec.run_duration.count()},
              {"group", spec.group},
              {"request", spec.name}});
  }
  if (lines > kMostLines) log.info("and_more", {{"n", lines - kMostLines}});
}

void log_plan(const Log& log, const Demand& demand, const ResumePlan& plan) {
  if (!demand.foreign.empty()) {
    log.warning("foreign_nodes",
                {{"nodes", fold_hostlist(demand.foreign)},
                 {"n", demand.foreign.size()},
                 {"why", "in no nodeset of flex-start.yaml"},
                 {"then", "left alone"}});
  }
  if (!plan.left_alone.empty()) {
    log.info("left_alone",
             {{"nodes", fold_hostlist(plan.left_alone)},
              {"n", plan.left_alone.size()},
              {"why", "have a VM or an active request"}});
  }
  for (const Refusal& refusal : plan.refusals) {
    const std::initializer_list<Field> fields = {{"job", refusal.job},
                                                 {"nodes", fold_hostlist(refusal.nodes)},
                                                 {"n", refusal.nodes.size()},
                                                 {"kind", to_string(refusal.error.kind)},
                                                 {"why", refusal.error.what}};
    if (waits_for_turn(refusal.error))
      log.info("left_to_sweeper", fields);
    else
      log.error("not_requested", fields);
  }
}

GiveBackTo slurm_of(const Teller& teller) {
  return {.scheduler = *teller.session.scheduler,
          .config = teller.session.config,
          .log = teller.log,
          .patience = kWakingPatience};
}

/// The nodes that flex-resume was called for, and the others of the jobs in the resume file: what
/// they have is looked at, too.
std::vector<NodeName> nodes_to_look_at(const std::vector<NodeName>& nodes,
                                       const std::optional<ResumeRequest>& request) {
  std::vector<NodeName> all = nodes;
  std::unordered_set<NodeName> known(nodes.begin(), nodes.end());
  if (!request) return all;
  for (const ResumeRequest::JobEntry& entry : request->jobs) {
    for (const NodeName& node : entry.nodes_alloc) {
      if (known.insert(node).second) all.push_back(node);
    }
  }
  return all;
}

/// All jobs, if a request for one of the nodes is for a job that has not been asked about.
Result<std::vector<Job>> living_jobs(Scheduler& scheduler,
                                     const FleetView& fleet,
                                     const std::vector<NodeName>& nodes,
                                     const std::vector<Job>& known) {
  const std::vector<JobId> asked = jobs_asked_for(fleet, nodes);
  const bool are_known = std::all_of(asked.begin(), asked.end(), [&](JobId id) {
    return std::any_of(known.begin(), known.end(), [&](const Job& job) { return job.id == id; });
  });
  auto jobs = are_known ? Result<std::vector<Job>>{known} : scheduler.load_all_jobs();
  if (jobs) std::erase_if(*jobs, [](const Job& job) { return !job.holds_nodes(); });
  return jobs;
}

/// Of the jobs that have groups of their own those that are to be looked at. What is left of jobs
/// that are gone can be told only by all jobs that there are.
std::vector<JobId> jobs_with_groups(Scheduler& scheduler,
                                    const std::vector<Job>& known,
                                    const std::vector<NodeName>& nodes,
                                    const std::vector<JobId>& owners) {
  const auto all = scheduler.load_all_jobs();
  return all ? jobs_to_look_at(*all, nodes, owners) : jobs_of_nodes(known, nodes);
}

/// VMs that an earlier config's bulkInsert has made, where the sweeper says that there are some.
void look_for_loose(const Session& session, FleetView& fleet) {
  if (session.state_dir.empty()) return;
  add_loose(*session.cloud, session.config, session.cluster, load_loose(session.state_dir), fleet);
}

/// A job is asked for as a whole: nodes that slurmctld has woken before, for a job that is gone,
/// are part of what it lacks. Without slurmctld's word on their state they are left alone.
bool complete(Session& session,
              const std::vector<Job>& jobs,
              std::vector<NodeName> looked_at,
              FleetView& fleet,
              Demand& demand) {
  const std::vector<NodeName> rest = rest_of_jobs(session.config, demand);
  std::unordered_set<NodeName> seen(looked_at.begin(), looked_at.end());
  const auto is_new = [&](const NodeName& node) { return !seen.contains(node); };
  if (std::any_of(rest.begin(), rest.end(), is_new)) {
    looked_at.insert(looked_at.end(), rest.begin(), rest.end());
    fleet = fetch_fleet(
        *session.cloud, session.config, session.cluster, looked_at, [&](const auto& owners) {
          return jobs_with_groups(*session.scheduler, jobs, looked_at, owners);
        });
    look_for_loose(session, fleet);
  }
  std::vector<NodeName> asked = rest;
  for (const Demand::JobNodes& wanted : demand.jobs)
    asked.insert(asked.end(), wanted.nodes.begin(), wanted.nodes.end());
  auto living = living_jobs(*session.scheduler, fleet, asked, jobs);
  if (!living) return false;
  demand.living = std::move(*living);
  const std::vector<NodeName> lacking = nodes_without_vm(
      session.config, session.cluster, fleet, others_of_jobs(session.config, demand));
  if (lacking.empty()) return true;
  const auto nodes = session.scheduler->load_nodes();
  if (!nodes) return false;
  note_states(session.config, *nodes, lacking, demand);
  return true;
}

void tell_cancelled(const std::vector<CancelOutcome>& outcomes, const Teller& teller) {
  std::vector<Event> events;
  for (const CancelOutcome& outcome : outcomes) {
    events.push_back(event_of(Teller::now(), outcome));
    const std::initializer_list<Field> fields = {
        {"job", outcome.cancel.job},
        {"nodes", fold_hostlist(outcome.cancel.nodes)},
        {"n", outcome.cancel.nodes.size()},
        {"group", outcome.cancel.group},
        {"request", outcome.cancel.request},
        {"why", outcome.error ? outcome.error->what : outcome.cancel.why}};
    if (outcome.error)
      teller.log.warning("cancel_failed", fields);
    else
      teller.log.info("cancelled", fields);
  }
  teller.tell(events);
}

/// Asks for what is admitted. Of a job for which there was not room for all no part is kept.
std::vector<RequestOutcome> ask(const Look& look,
                                const StillWanted& is_wanted,
                                const Teller& teller,
                                ResumePlan& plan) {
  Cloud& cloud = *teller.session.cloud;
  AskedFile file{teller.session.state_dir, "flex-resume"};
  const bool is_reserved = admit_and_reserve(look, file, teller, plan);
  std::vector<RequestOutcome> outcomes = apply_to_cloud(cloud, plan, NameWait{}, is_wanted);
  tell_cancelled(take_back(cloud, find_parts(look.demand, outcomes), outcomes), teller);
  if (is_reserved) settle(file, outcomes, teller);
  return outcomes;
}

/// What a zone can never serve is asked for as on_stockout says, step by step.
void ask_elsewhere(const Look& look,
                   const StillWanted& is_wanted,
                   const Teller& teller,
                   ResumePlan& plan,
                   std::vector<RequestOutcome>& outcomes) {
  const Session& session = teller.session;
  std::vector<RequestOutcome> hopeless = take_hopeless(session.config, outcomes, 1);
  for (std::size_t step = 1; !hopeless.empty(); ++step) {
    for (const RequestOutcome& outcome : hopeless) {
      const RequestSpec& spec = outcome.request.spec;
      teller.log.warning("zone_cannot_serve",
                         {{"job", outcome.request.job},
                          {"nodes", fold_hostlist(spec.nodes)},
                          {"n", spec.nodes.size()},
                          {"group", spec.group},
                          {"why", outcome.error.what},
                          {"then", fmt::format("on_stockout, entry {}", step)}});
    }
    teller.tell(hopeless, {});
    const Demand part = part_of(look.demand, hopeless);
    ResumePlan next =
        plan_resume(session.config, session.cluster, part, look.fleet, {.step = step});
    std::vector<RequestOutcome> tried =
        ask({.began = look.began, .fleet = look.fleet, .queue = look.queue, .demand = part},
            is_wanted,
            teller,
            next);
    hopeless = take_hopeless(session.config, tried, step + 1);
    std::move(tried.begin(), tried.end(), std::back_inserter(outcomes));
    std::move(next.refusals.begin(), next.refusals.end(), std::back_inserter(plan.refusals));
  }
}

/// Nodes whose job is gone.
bool release(std::vector<NodeName>& unwanted, const Teller& teller) {
  const std::vector<NodeName> wanted = unwanted;
  // The requests of other jobs do not wait for this.
  GiveBackTo slurm = slurm_of(teller);
  slurm.patience = {};
  if (!release_unwanted(slurm, unwanted)) return false;
  if (!wanted.empty())
    teller.tell(
        {given_back_event(Teller::now(), 0, wanted, "the job that asked for this node is gone")});
  return true;
}

bool give_back(const SlurmReport& report, const Teller& teller) {
  const bool ok = apply_to_slurm(slurm_of(teller), report);
  Event like = Teller::now();
  if (!ok) like.more["result"] = "failed";
  teller.tell(given_back_events(like, report.plan.refusals, report.outcomes));
  return ok;
}

int resume(const Options& options, const ResumeFile& file, const Log& log) {
  const auto started = std::chrono::steady_clock::now();
  bool ok = true;
  auto nodes = expand_hostlist(options.hostlist);
  if (!nodes) {
    log.error("bad_hostlist", {{"why", nodes.error().what}});
    std::cerr << "flex-resume: " << nodes.error().what << '\n';
    return kExitUsage;
  }
  auto session = open_session(options, log);
  if (!session) return kExitUsage;
  const std::optional<ResumeRequest> request = parse_file(file, log, ok);

  // slurmctld and Compute Engine are asked at the same time: neither answer depends on the other.
  QueueFile queue;
  const TimePoint began = SystemClock{}.now();
  const auto jobs_coming = std::async(std::launch::async, [&] {
                             auto loaded = load_jobs_for(*session->scheduler, request, *nodes);
                             if (loaded) queue = find_waiting(*session);
                             return loaded;
                           }).share();
  const std::vector<NodeName> looked_at = nodes_to_look_at(*nodes, request);
  FleetView fleet = fetch_fleet(
      *session->cloud, session->config, session->cluster, looked_at, [&](const auto& owners) {
        const auto& loaded = jobs_coming.get();
        return loaded ? jobs_with_groups(*session->scheduler, *loaded, looked_at, owners)
                      : std::vector<JobId>{};
      });
  const Result<std::vector<Job>>& jobs = jobs_coming.get();
  if (!jobs) {
    session->state_dir = session->config.sweeper.state_dir;
    log.error("slurmctld_unreachable",
              {{"why", jobs.error().what},
               {"then", "asking for the longest run duration, without time limits"}});
    ok = false;
  }

  Demand demand = resolve_demand({.config = session->config,
                                  .nodes = *nodes,
                                  .request = request ? &*request : nullptr,
                                  .jobs = jobs ? &*jobs : nullptr});
  const Teller teller{.session = *session, .log = log};
  teller.tell(asked_events(Teller::now(), demand));
  std::vector<NodeName> unwanted = demand.unwanted;
  if (jobs) ok = release(unwanted, teller) && ok;
  look_for_loose(*session, fleet);
  if (jobs) ok = complete(*session, *jobs, looked_at, fleet, demand) && ok;
  ResumePlan plan = plan_resume(session->config, session->cluster, demand, fleet);
  tell_cancelled(cancel_first(*session->cloud, plan), teller);
  leave_paused(demand, plan, teller);
  WantedNow wanted{*session->scheduler, plan};
  StillWanted is_wanted = [&](const PlannedRequest& one) { return wanted(one); };
  if (!jobs) is_wanted = nullptr;
  const Look seen{.began = began, .fleet = fleet, .queue = queue, .demand = demand};
  std::vector<RequestOutcome> outcomes = ask(seen, is_wanted, teller, plan);
  ask_elsewhere(seen, is_wanted, teller, plan, outcomes);
  spare_asked(outcomes, plan.refusals);
  log_plan(log, demand, plan);
  log_outcomes(log, outcomes);
  teller.tell(outcomes, plan.refusals);
  if (jobs) ok = give_back({demand, plan, outcomes}, teller) && ok;
  if (jobs) ok = release_unwanted(slurm_of(teller), unwanted) && ok;

  std::size_t failed = 0;
  std::size_t done = 0;
  for (const Refusal& refusal : plan.refusals) failed += waits_for_turn(refusal.error) ? 0 : 1;
  for (const RequestOutcome& outcome : outcomes) {
    if (outcome.result == RequestResult::Unwanted) continue;
    if (outcome.result != RequestResult::Failed)
      ++done;
    else if (!waits_for_turn(outcome.error))
      ++failed;
  }
  log_summary(
      log,
      *session,
      {.event = "resumed", .nodes = *nodes, .done = done, .failed = failed, .started = started});
  return ok && failed == 0 ? kExitOk : kExitFailed;
}

}  // namespace

}  // namespace flex

int main(int argc, char** argv) {
  const flex::ResumeFile file = flex::read_first();
  flex::prepare_process();
  const auto parsed = flex::parse_options(
      argc,
      argv,
      "flex-resume",
      "Slurm ResumeProgram: asks Google Cloud for Flex Start VMs for the given nodes");
  if (parsed.exit_code) return *parsed.exit_code;
  const auto log = flex::open_log(parsed.options, "flex-resume");
  if (!log) {
    std::cerr << "flex-resume: " << log.error().what << '\n';
    return flex::kExitUsage;
  }
  return flex::resume(parsed.options, file, *log);
}

// SPDX-License-Identifier: GPL-2.0-or-later
// flex-resume: Slurm's ResumeProgram. Turns nodes and the jobs that wait for them into Flex Start
// requests, and exits.
#include "lib/config/load.h"
#include "lib/core/clock.h"
#include "lib/core/log.h"
#include "lib/core/program.h"
#include "lib/fleet/queue.h"
#include "lib/fleet/session.h"
#include "lib/fleet/view.h"
#include "lib/slurm/hostlist.h"
#include "resume/apply.h"
#include "resume/demand.h"
#include "resume/plan.h"
#include "resume/request.h"
#include "resume/turn.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
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

/// How many wait for their turn, as the sweeper says.
std::size_t count_waiting(const Config& config, Scheduler& scheduler) {
  const auto state_dir = find_state_dir(config, scheduler);
  if (!state_dir) return 0;
  return load_queue(*state_dir, SystemClock{}.now(), config.sweeper.interval);
}

/// Past those who wait, or beyond what the region takes, nothing is asked for: the sweeper does so
/// when the turn has come.
void leave_to_sweeper(const Config& config,
                      const FleetView& fleet,
                      std::size_t waiting,
                      ResumePlan& plan,
                      const Log& log) {
  const std::size_t active = count_active_requests(fleet);
  const std::size_t most = config.api.max_active_requests;
  const std::size_t room = waiting > 0 || active >= most ? 0 : most - active;
  const std::vector<NodeName> left = leave_beyond(plan, room);
  if (left.empty()) return;
  log.info("left_to_sweeper",
           {{"nodes", fold_hostlist(left)},
            {"n", left.size()},
            {"why",
             waiting > 0 ? fmt::format("{} wait for their turn already", waiting)
                         : fmt::format("{} of {} requests are in use", active, most)},
            {"then", "the sweeper asks, longest waiting first"}});
}

/// Google has no room for the request, or the nodeset for the nodes: no failure.
bool waits_for_turn(const Error& error) {
  return is_active_requests_quota(error) || is_max_nodes(error);
}

void log_outcomes(const Log& log, const std::vector<RequestOutcome>& outcomes) {
  std::size_t lines = 0;
  for (const RequestOutcome& outcome : outcomes) {
    const RequestSpec& spec = outcome.request.spec;
    const std::string nodes = fold_hostlist(spec.nodes);
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
  std::size_t waiting = 0;
  auto jobs_coming = std::async(std::launch::async, [&] {
    auto loaded = load_jobs_for(*session->scheduler, request, *nodes);
    if (loaded) waiting = count_waiting(session->config, *session->scheduler);
    return loaded;
  });
  const FleetView fleet = fetch_fleet(*session->cloud, session->config, session->cluster, *nodes);
  const Result<std::vector<Job>> jobs = jobs_coming.get();
  if (!jobs) {
    log.error("slurmctld_unreachable",
              {{"why", jobs.error().what},
               {"then", "asking for the longest run duration, without time limits"}});
    ok = false;
  }

  const Demand demand = resolve_demand({.config = session->config,
                                        .nodes = *nodes,
                                        .request = request ? &*request : nullptr,
                                        .jobs = jobs ? &*jobs : nullptr});
  if (jobs) ok = release_unwanted(*session->scheduler, demand.unwanted, log) && ok;
  ResumePlan plan = plan_resume(session->config, session->cluster, demand, fleet);
  log_plan(log, demand, plan);
  leave_to_sweeper(session->config, fleet, waiting, plan, log);
  std::vector<RequestOutcome> outcomes = apply_to_cloud(*session->cloud, plan);
  spare_asked(outcomes, plan.refusals);
  log_outcomes(log, outcomes);
  if (jobs) ok = apply_to_slurm(*session->scheduler, {demand, plan, outcomes}, log) && ok;

  std::size_t failed = 0;
  std::size_t done = 0;
  for (const Refusal& refusal : plan.refusals) failed += waits_for_turn(refusal.error) ? 0 : 1;
  for (const RequestOutcome& outcome : outcomes) {
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

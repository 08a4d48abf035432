// SPDX-License-Identifier: GPL-2.0-or-later
// flexctl plan: what would be asked of Google for a job or for nodes. It only reads.
#include "ctl/command.h"
#include "ctl/job_name.h"
#include "ctl/known.h"
#include "ctl/plan_text.h"
#include "ctl/setup.h"
#include "ctl/terminal.h"
#include "lib/core/duration.h"
#include "lib/fleet/queue.h"
#include "lib/fleet/session.h"
#include "lib/fleet/view.h"
#include "lib/provision/node_use.h"
#include "lib/slurm/hostlist.h"
#include "resume/admit.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

namespace flex {

namespace {

struct PlanCommand {
  std::string job{};
  std::string nodes{};
  std::string time{};
  bool is_json = false;
};

/// Which nodes, and for whom.
struct Wanted {
  std::vector<NodeName> nodes{};
  Demand demand{};
};

Result<Wanted> wanted_by_job(Setup& setup, const std::string& text) {
  const auto name = parse_job_name(text);
  if (!name) return Error{ErrorKind::Invalid, fmt::format("--job: '{}' is no job's number", text)};
  if (setup.scheduler == nullptr) return Error{ErrorKind::Invalid, setup.why_no_slurm};
  const auto jobs = setup.scheduler->load_all_jobs();
  if (!jobs) return jobs.error();
  for (const Job& job : *jobs) {
    if (!name->is(job)) continue;
    if (job.is_pending)
      return Error{
          ErrorKind::Precondition,
          fmt::format("job {} has no nodes yet, Slurm chooses them when it starts: flexctl "
                      "plan --nodes LIST --time T tells of nodes that you choose",
                      text)};
    if (!job.holds_nodes())
      return Error{ErrorKind::Precondition, fmt::format("job {} is over", text)};
    Wanted wanted{.nodes = job.nodes, .demand = {}};
    wanted.demand = resolve_demand(
        {.config = setup.config, .nodes = wanted.nodes, .request = nullptr, .jobs = &*jobs});
    return wanted;
  }
  return Error{ErrorKind::NotFound, fmt::format("slurmctld knows no job {}", text)};
}

Result<Wanted> wanted_by_nodes(const Setup& setup, const PlanCommand& command) {
  auto nodes = expand_hostlist(command.nodes);
  if (!nodes) return nodes.error().in("--nodes");
  Wanted wanted{.nodes = *nodes, .demand = {}};
  std::vector<NodeName> ours;
  for (const NodeName& node : *nodes)
    (setup.config.find(node) == nullptr ? wanted.demand.foreign : ours).push_back(node);
  if (command.time.empty()) {
    wanted.demand.jobless = std::move(ours);
    return wanted;
  }
  const auto limit = parse_job_time(command.time);
  if (!limit) return limit.error().in("--time");
  Job job;
  job.id = kMadeUpJob;
  job.nodes = ours;
  job.time_limit = *limit;
  // As flex-resume would: static nodes are in requests of their own.
  const auto is_static = [&](const NodeName& node) { return setup.config.find(node)->is_static; };
  std::copy_if(ours.begin(), ours.end(), std::back_inserter(wanted.demand.jobless), is_static);
  std::erase_if(ours, is_static);
  if (!ours.empty())
    wanted.demand.jobs.push_back({.job = std::move(job), .nodes = std::move(ours)});
  return wanted;
}

/// What flex-resume would leave to the sweeper, and what is paused.
void add_notes(Setup& setup, const std::string& cluster, const FleetView& fleet, PlanStory& story) {
  const auto state_dir = state_dir_of(setup);
  const TimePoint now = wall_clock();
  const QueueFile queue =
      state_dir ? load_queue(*state_dir, now, setup.config.sweeper.interval) : QueueFile{};
  keep_to_max_nodes(
      setup.config,
      story.demand,
      find_room({.config = setup.config, .cluster = cluster, .fleet = fleet, .queue = queue}),
      now,
      story.plan);
  std::set<std::string> nodesets;
  for (const GroupPlan& group : story.plan.groups) nodesets.insert(group.nodeset);
  const AdmissionLimits limits{.region = setup.config.region,
                               .most = setup.config.api.max_active_requests,
                               .active = count_active_requests(fleet),
                               .waiting = queue.waiting};
  // It is shown as it would be asked for.
  ResumePlan copy = story.plan;
  for (const LeftAsk& ask : admit_plan(setup.config, story.demand, limits, now, copy))
    story.notes.push_back(
        fmt::format("{}: the sweeper asks when there is room, longest waiting first", ask.why));
  const Known known = state_dir ? read_known(*state_dir) : Known{};
  for (const std::string& nodeset : nodesets) {
    const std::string stopped = stopped_text(known.memory, nodeset);
    if (!stopped.empty())
      story.notes.push_back(
          fmt::format("nodeset {} {}; nothing is asked for until flexctl resume {}",
                      nodeset,
                      stopped,
                      nodeset));
  }
}

int run_plan(const PlanCommand& command, const Options& options) {
  auto setup = open_setup(options);
  if (!setup) return kExitUsage;
  auto wanted =
      !command.job.empty() ? wanted_by_job(*setup, command.job) : wanted_by_nodes(*setup, command);
  if (!wanted) return complain(wanted.error().what, exit_code_of(wanted.error()));
  const auto cluster = cluster_of(*setup);
  if (!cluster) return complain(cluster.error().what, exit_code_of(cluster.error()));
  const auto cloud = open_cloud(setup->config, RetryPolicy{.limit = 2});
  if (!cloud) return complain(cloud.error().what, kExitUsage);
  (*cloud)->set_deadline(std::chrono::steady_clock::now() + setup->config.api.run_timeout);
  const FleetView fleet = fetch_fleet(**cloud, setup->config, *cluster, wanted->nodes);
  PlanStory story{.config = setup->config, .demand = std::move(wanted->demand)};
  story.plan = plan_resume(setup->config, *cluster, story.demand, fleet);
  add_notes(*setup, *cluster, fleet, story);
  if (command.is_json)
    std::cout << plan_json(story);
  else
    for (const std::string& line : plan_lines(story)) std::cout << printable(line) << '\n';
  std::cout << std::flush;
  return has_refusals(story) ? kExitFailed : kExitOk;
}

}  // namespace

void add_plan(CLI::App& app, Command& command) {
  CLI::App* const plan = app.add_subcommand(
      "plan", "what would be asked of Google for a job or nodes, without asking");
  plan->fallthrough();
  const auto own = std::make_shared<PlanCommand>();
  CLI::Option_group* const whom = plan->add_option_group("for whom");
  whom->add_option("--job", own->job, "a job that has its nodes: 12, 12_3 or 12+1")
      ->type_name("ID");
  CLI::Option* const nodes =
      whom->add_option("--nodes", own->nodes, "nodes, as Slurm writes them: a3u-[0-15]")
          ->type_name("LIST");
  whom->require_option(1);
  plan->add_option("--time",
                   own->time,
                   "the time limit of a job on these nodes, as in sbatch; default: no job")
      ->type_name("TIME")
      ->needs(nodes);
  plan->add_flag("--json", own->is_json, "the plan as JSON");
  plan->callback([&command, own] {
    command.run = [own](const Options& options, const Log&) { return run_plan(*own, options); };
  });
}

}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
// flexctl cancel: takes one request out of Google's queue, and gives its job back.
#include "ctl/cancel_plan.h"
#include "ctl/command.h"
#include "ctl/setup.h"
#include "ctl/terminal.h"
#include "lib/fleet/power_down.h"
#include "lib/fleet/queue.h"
#include "lib/fleet/session.h"
#include "lib/slurm/hostlist.h"
#include "sweeper/act.h"
#include "sweeper/observe.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace flex {

namespace {

struct CancelCommand {
  std::string request{};
  bool is_hold = false;
  bool is_requeue = false;
  bool is_cancel_job = false;
  bool is_yes = false;
  bool is_json = false;

  [[nodiscard]] OnTimeout then() const {
    if (is_cancel_job) return OnTimeout::Cancel;
    return is_requeue ? OnTimeout::Requeue : OnTimeout::Hold;
  }
};

void print_plan(std::ostream& out, const CancelPlan& plan) {
  for (const std::string& sentence : plan.sentences) out << "  " << printable(sentence) << '\n';
}

/// Without a terminal nobody can say yes: then --yes must.
bool is_confirmed(const CancelCommand& command, const CancelPlan& plan) {
  if (command.is_yes) return true;
  if (::isatty(STDIN_FILENO) != 1) {
    complain("nobody to ask: say --yes to do this:", kExitOk);
    print_plan(std::cerr, plan);
    return false;
  }
  std::cerr << "This will\n";
  print_plan(std::cerr, plan);
  std::cerr << "Go on? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

/// Nodes that slurmctld is about to wake are powered down a moment later.
void wait_for_waking(Session& session, const CancelPlan& plan, ActReport& told) {
  std::cerr << "waiting for slurmctld to carry out a POWER_UP of " << fold_hostlist(told.waking)
            << '\n';
  // A job that can be neither requeued nor cancelled ends with its nodes.
  const bool leaves_first =
      std::any_of(plan.slurm.begin(), plan.slurm.end(), [](const Action& action) {
        return std::holds_alternative<RequeueJob>(action.what) ||
               std::holds_alternative<CancelJob>(action.what);
      });
  const TakenDown taken = take_down_patiently(*session.scheduler,
                                              session.config,
                                              {.request = NodeRequest::PowerDownForce,
                                               .nodes = told.waking,
                                               .reason = "flex: " + plan.cancel.why,
                                               .only_free = leaves_first},
                                              kWakingPatience);
  if (!taken.result) ++told.failed;
  if (taken.waking.empty()) --told.again;
}

/// First Google, then, if that was in time, Slurm.
int carry_out(Session& session,
              const Snapshot& shot,
              const CancelPlan& plan,
              std::vector<Event>& events,
              const Log& log) {
  Memory memory;
  const Log loud{[&](LogLevel level, std::string_view line) {
                   if (level >= LogLevel::Warning) complain(line, kExitOk);
                 },
                 LogLevel::Warning};
  log.info("cancel", {{"why", plan.cancel.why}});
  Actor actor{
      .config = session.config,
      .shot = shot,
      .cloud = *session.cloud,
      .scheduler = *session.scheduler,
      .memory = memory,
      .log = loud,
      .serial_dir = {},
      .should_stop = [] { return false; },
      .asked = {},
      .served = {},
      .tell =
          [&](std::vector<Event> done) { events.insert(events.end(), done.begin(), done.end()); }};
  session.cloud->set_deadline(std::chrono::steady_clock::now() + session.config.api.run_timeout);
  const ActReport cancelled = act(actor, {plan.cancel});
  if (cancelled.again > 0)
    return complain("too late: it is just being served, and nothing was done", kExitFailed);
  if (cancelled.failed > 0)
    return complain("the request could not be cancelled, and nothing else was done", kExitFailed);
  ActReport told = act(actor, plan.slurm);
  if (!told.waking.empty()) wait_for_waking(session, plan, told);
  if (told.again > 0)
    return complain(
        "the request is cancelled, but its nodes have changed in the meantime: the "
        "sweeper sees to them",
        kExitFailed);
  if (told.failed > 0)
    return complain("the request is cancelled, but slurmctld did not take all of the rest",
                    kExitFailed);
  return kExitOk;
}

void print_done(const CancelCommand& command, const CancelPlan& plan) {
  if (!command.is_json) {
    std::cout << "Done:\n";
    print_plan(std::cout, plan);
  } else {
    const auto& cancel = std::get<CancelRequest>(plan.cancel.what);
    std::cout << nlohmann::json{{"request", cancel.request.text},
                                {"group", cancel.group.text},
                                {"nodes", fold_hostlist(cancel.nodes)},
                                {"job", cancel.job},
                                {"done", plan.sentences}}
                     .dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
              << '\n';
  }
  std::cout << std::flush;
}

Result<CancelPlan> look_and_plan(Session& session, const CancelCommand& command, Snapshot& shot) {
  shot = {};
  shot.cluster = session.cluster;
  const auto seen =
      observe_whole(*session.cloud, *session.scheduler, session.config, wall_clock(), shot);
  if (!seen) return seen.error();
  if (const auto state_dir = find_state_dir(session.config, *session.scheduler)) {
    // What cannot be read is told when something is to be written there.
    if (auto cancelled = load_cancelled(*state_dir)) shot.cancelled = std::move(*cancelled);
  }
  return plan_cancel(
      session.config,
      shot,
      {.request = command.request, .then = command.then(), .by = user_name(), .now = wall_clock()});
}

int run_cancel(const CancelCommand& command, const Options& options, const Log& log) {
  auto session = open_session(options, log);
  if (!session) return kExitUsage;
  Snapshot shot;
  auto plan = look_and_plan(*session, command, shot);
  if (!plan) return complain(plan.error().what, kExitFailed);
  if (!is_confirmed(command, *plan)) return complain("nothing was done", kExitFailed);
  const auto state_dir = find_state_dir(session->config, *session->scheduler);
  if (!state_dir && plan->not_again) return complain(state_dir.error().what, kExitFailed);
  std::optional<FileLock> lock;
  if (plan->not_again) {
    auto taken = lock_cancelled(*state_dir);
    if (!taken)
      return complain("the sweeper cannot be told, and nothing was done: " + taken.error().what,
                      kExitFailed);
    lock = std::move(*taken);
    // What was to go on may have been cancelled meanwhile.
    const std::vector<std::string> confirmed = plan->sentences;
    plan = look_and_plan(*session, command, shot);
    if (!plan) return complain(plan.error().what, kExitFailed);
    if (plan->sentences != confirmed && !is_confirmed(command, *plan))
      return complain("nothing was done", kExitFailed);
  }
  // First of all: between the cancelling and this the sweeper would make it again.
  if (plan->not_again) {
    const auto told = add_cancelled(*state_dir, *plan->not_again);
    if (!told)
      return complain("the sweeper cannot be told, and nothing was done: " + told.error().what,
                      kExitFailed);
  }
  std::vector<Event> events;
  const int code = carry_out(*session, shot, *plan, events, log);
  if (code == kExitOk) print_done(command, *plan);
  if (code != kExitOk && plan->not_again) {
    if (const auto undone = remove_cancelled(*state_dir, *plan->not_again); !undone)
      complain(undone.error().what, kExitOk);
  }
  if (state_dir) tell_history(*state_dir, std::move(events));
  return code;
}

}  // namespace

void add_cancel(CLI::App& app, Command& command) {
  CLI::App* const cancel =
      app.add_subcommand("cancel", "cancel a request that waits, and give its job back");
  cancel->fallthrough();
  const auto own = std::make_shared<CancelCommand>();
  cancel->add_option("request", own->request, "its name as in flexctl status, or GROUP/NAME")
      ->type_name("REQUEST")
      ->required();
  CLI::Option* const hold =
      cancel->add_flag("--hold", own->is_hold, "the job is requeued and held (the default)");
  CLI::Option* const requeue =
      cancel->add_flag("--requeue", own->is_requeue, "the job is requeued and may ask again");
  CLI::Option* const job =
      cancel->add_flag("--cancel-job", own->is_cancel_job, "the job is cancelled");
  hold->excludes(requeue)->excludes(job);
  requeue->excludes(job);
  cancel->add_flag("--yes", own->is_yes, "do not ask");
  cancel->add_flag("--json", own->is_json, "what was done as JSON");
  cancel->callback([&command, own] {
    command.run = [own](const Options& options, const Log& log) {
      return run_cancel(*own, options, log);
    };
  });
}

}  // namespace flex

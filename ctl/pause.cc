// SPDX-License-Identifier: GPL-2.0-or-later
// flexctl pause, flexctl resume: an admin's hand on the breaker of a nodeset. The wish is written
// down for the sweeper; the nodes are drained here, so that it holds at once.
#include "lib/fleet/pause.h"

#include "ctl/command.h"
#include "ctl/setup.h"
#include "ctl/terminal.h"
#include "lib/core/state_file.h"
#include "lib/core/text.h"
#include "lib/fleet/power_down.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/node_state.h"
#include "sweeper/memory.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <utility>

namespace flex {

namespace {

constexpr std::size_t kMostReason = 200;

struct PauseCommand {
  std::string nodeset{};
  std::string reason{};
  bool is_json = false;
};

/// What both need: the nodeset, what is paused, and the lock that keeps another flexctl away.
struct Desk {
  Setup setup{};
  const NodesetConfig* nodeset = nullptr;
  std::string state_dir{};
  FileLock lock;
  Pauses pauses{};
};

/// The exit code where it cannot be opened.
struct Opened {
  std::optional<Desk> desk{};
  int code = kExitOk;
};

Opened fail(std::string_view what, int code) {
  return {.desk = {}, .code = complain(what, code)};
}

Opened open_desk(const PauseCommand& command, const Options& options) {
  auto setup = open_setup(options);
  if (!setup) return {.desk = {}, .code = kExitUsage};
  const auto nodeset = find_nodeset(setup->config, command.nodeset);
  if (!nodeset) return fail(nodeset.error().what, kExitUsage);
  if (setup->scheduler == nullptr) return fail(setup->why_no_slurm, kExitUsage);
  const auto state_dir = state_dir_of(*setup);
  if (!state_dir) return fail(state_dir.error().what, exit_code_of(state_dir.error()));
  if (const auto made = make_directory(*state_dir); !made)
    return fail(made.error().what, kExitFailed);
  const std::string lock_path = *state_dir + "/paused.lock";
  auto lock = FileLock::acquire(lock_path);
  if (!lock) return fail(lock.error().what, kExitFailed);
  auto pauses = load_pauses(*state_dir);
  if (!pauses) return fail(pauses.error().what, kExitFailed);
  // The pointer is into the vector's memory, which moves along with the config.
  return {.desk = Desk{.setup = std::move(*setup),
                       .nodeset = *nodeset,
                       .state_dir = *state_dir,
                       .lock = std::move(*lock),
                       .pauses = std::move(*pauses)},
          .code = kExitOk};
}

Result<Done> save(const Desk& desk) {
  return write_pauses(desk.state_dir, desk.pauses);
}

/// The nodeset's nodes for which it is so.
template <class Is>
Result<std::vector<NodeName>> nodes_that(const Desk& desk, const Is& is) {
  const auto nodes = desk.setup.scheduler->load_nodes();
  if (!nodes) return nodes.error();
  std::vector<NodeName> found;
  for (const Node& node : *nodes) {
    const Config::Place* const place = desk.setup.config.find(node.name);
    const bool is_its =
        place != nullptr && &desk.setup.config.nodesets[place->nodeset] == desk.nodeset;
    if (is_its && is(node)) found.push_back(node.name);
  }
  return found;
}

void tell(const Desk& desk,
          std::string_view what,
          const std::vector<NodeName>& nodes,
          const std::string& why) {
  tell_history(desk.state_dir,
               {{.when = {},
                 .program = {},
                 .what = std::string(what),
                 .job = 0,
                 .nodeset = desk.nodeset->name,
                 .group = {},
                 .request = {},
                 .nodes = fold_hostlist(nodes),
                 .n = nodes.size(),
                 .rule = {},
                 .why = why,
                 .more = {}}});
}

void print(const PauseCommand& command, const nlohmann::json& json, const std::string& sentence) {
  if (command.is_json)
    std::cout << json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  else
    std::cout << sentence << '\n';
  std::cout << std::flush;
}

int run_pause(const PauseCommand& command, const Options& options) {
  Opened opened = open_desk(command, options);
  if (!opened.desk) return opened.code;
  Desk& desk = *opened.desk;
  const std::string& name = desk.nodeset->name;
  const Pause pause{.by = user_name(),
                    .reason = shortened(printable(command.reason), kMostReason),
                    .since = wall_clock()};
  desk.pauses[name] = pause;
  if (const auto saved = save(desk); !saved) return complain(saved.error().what, kExitFailed);
  auto nodes = nodes_that(desk, is_to_drain);
  Result<Done> drained = Done{};
  if (!nodes)
    drained = nodes.error();
  else if (!nodes->empty())
    drained =
        desk.setup.scheduler->update_nodes(*nodes, NodeRequest::Drain, pause_reason(name, pause));
  const std::vector<NodeName> done = nodes && drained ? *nodes : std::vector<NodeName>{};
  tell(desk, "pause", done, pause.why());
  print(
      command,
      {{"nodeset", name},
       {"paused", true},
       {"by", pause.by},
       {"reason", pause.reason},
       {"drained", fold_hostlist(done)},
       {"n", done.size()}},
      fmt::format("Nodeset {} is paused: {} of its {} nodes drained. Running jobs go on, and what "
                  "waits in Google's queue stays there (flexctl status {}; flexctl cancel "
                  "REQUEST). To go on: flexctl resume {}",
                  name,
                  done.size(),
                  desk.nodeset->nodes.size(),
                  name,
                  name));
  if (drained) return kExitOk;
  return complain(fmt::format("the nodes could not be drained now: {}; the sweeper does it in its "
                              "next round",
                              drained.error().what),
                  kExitFailed);
}

/// The sweeper has stopped it, and has not drained a node yet.
bool is_about_to_be_drained(const Desk& desk) {
  constexpr std::size_t kMostMemory = std::size_t{64} << 20U;
  const auto text = read_small_file(desk.state_dir + "/memory.json", kMostMemory);
  if (!text) return false;
  const auto memory = parse_memory(*text);
  return memory && memory->stopped.contains(desk.nodeset->name);
}

/// Then no node of the nodeset is unusable, whoever undrained it.
Result<Done> undrain(const Desk& desk, const std::vector<NodeName>& drained) {
  Scheduler& scheduler = *desk.setup.scheduler;
  const auto done = undrain_nodes(scheduler, drained);
  const auto unusable = nodes_that(desk, is_unusable);
  if (!done || !unusable) return done ? unusable.error() : done.error();
  return take_down(scheduler,
                   desk.setup.config,
                   {.request = NodeRequest::PowerDownForce, .nodes = *unusable, .only_free = true})
      .result;
}

int run_resume(const PauseCommand& command, const Options& options) {
  Opened opened = open_desk(command, options);
  if (!opened.desk) return opened.code;
  Desk& desk = *opened.desk;
  const std::string& name = desk.nodeset->name;
  const bool was_paused = desk.pauses.erase(name) > 0;
  if (was_paused) {
    if (const auto saved = save(desk); !saved) return complain(saved.error().what, kExitFailed);
  }
  const auto nodes =
      nodes_that(desk, [&](const Node& node) { return is_stop_drained(node, name); });
  const Result<Done> undrained = nodes ? undrain(desk, *nodes) : nodes.error();
  const std::vector<NodeName> done = nodes && undrained ? *nodes : std::vector<NodeName>{};
  const bool is_news = was_paused || !done.empty();
  if (is_news) tell(desk, "resume", done, was_paused ? "the pause is over" : "the stop is cleared");
  if (undrained && !is_news && is_about_to_be_drained(desk))
    return complain(
        fmt::format("nodeset {} is stopped, but none of its nodes is drained yet, as all "
                    "are busy or on their way: once more in a minute",
                    name),
        kExitFailed);
  print(command,
        {{"nodeset", name},
         {"paused", false},
         {"was_paused", was_paused},
         {"undrained", fold_hostlist(done)},
         {"n", done.size()}},
        is_news ? fmt::format("Nodeset {} goes on: {} nodes undrained", name, done.size())
                : fmt::format("Nodeset {} was neither paused nor stopped", name));
  if (undrained) return kExitOk;
  return complain(
      fmt::format("the nodes could not be undrained now: {}; once slurmctld answers: flexctl "
                  "resume {}",
                  undrained.error().what,
                  name),
      kExitFailed);
}

CLI::App& add(CLI::App& app,
              const std::string& name,
              const std::string& purpose,
              const std::shared_ptr<PauseCommand>& own) {
  CLI::App* const added = app.add_subcommand(name, purpose);
  added->fallthrough();
  added->add_option("nodeset", own->nodeset, "of flex-start.yaml")
      ->type_name("NODESET")
      ->required();
  added->add_flag("--json", own->is_json, "what was done as JSON");
  return *added;
}

}  // namespace

void add_pause(CLI::App& app, Command& command) {
  const auto own = std::make_shared<PauseCommand>();
  CLI::App& pause =
      add(app, "pause", "ask for nothing in a nodeset, and start no more jobs there", own);
  pause.add_option("--reason", own->reason, "what its nodes' reason and waiting jobs say")
      ->type_name("TEXT");
  pause.callback([&command, own] {
    command.run = [own](const Options& options, const Log&) { return run_pause(*own, options); };
  });
}

void add_resume(CLI::App& app, Command& command) {
  const auto own = std::make_shared<PauseCommand>();
  add(app, "resume", "go on with a nodeset that was paused, or stopped by the sweeper", own)
      .callback([&command, own] {
        command.run = [own](const Options& options, const Log&) {
          return run_resume(*own, options);
        };
      });
}

}  // namespace flex

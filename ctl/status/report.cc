// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/status/report.h"

#include "ctl/terminal.h"
#include "lib/core/duration.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace flex {

namespace {

using Json = nlohmann::json;

/// A member of an object that need not be there, nor be of the kind that it should be.
class Members {
 public:
  explicit Members(const Json& json) : json_(json) {}

  [[nodiscard]] std::string text(const char* key) const {
    const Json* const found = find(key);
    return found != nullptr && found->is_string() ? printable(found->get<std::string>()) : "";
  }

  [[nodiscard]] std::uint64_t number(const char* key) const {
    const Json* const found = find(key);
    return found != nullptr && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
  }

  [[nodiscard]] bool flag(const char* key, bool otherwise = false) const {
    const Json* const found = find(key);
    return found != nullptr && found->is_boolean() ? found->get<bool>() : otherwise;
  }

  [[nodiscard]] TimePoint time(const char* key) const {
    const auto parsed = parse_time(text(key));
    return parsed ? *parsed : TimePoint{};
  }

  /// Its elements; none if it is no list.
  [[nodiscard]] const Json& list(const char* key) const {
    static const Json none = Json::array();
    const Json* const found = find(key);
    return found != nullptr && found->is_array() ? *found : none;
  }

  [[nodiscard]] const Json& object(const char* key) const {
    static const Json none = Json::object();
    const Json* const found = find(key);
    return found != nullptr && found->is_object() ? *found : none;
  }

 private:
  [[nodiscard]] const Json* find(const char* key) const {
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  const Json& json_;
};

NodesetReport to_nodeset(const Json& json) {
  const Members at{json};
  NodesetReport nodeset{.name = at.text("name"),
                        .mode = at.text("mode"),
                        .nodes = at.number("nodes"),
                        .static_nodes = at.number("static_nodes"),
                        .vms = at.number("vms"),
                        .jobs_waiting = at.number("jobs_waiting"),
                        .jobs_running = at.number("jobs_running"),
                        .next_end = at.time("next_end"),
                        .stopped = at.text("stopped"),
                        .paused = at.text("paused"),
                        .states = {}};
  // One that is paused is told as stopped, too.
  if (nodeset.stopped.starts_with("paused by ")) {
    if (nodeset.paused.empty()) nodeset.paused = nodeset.stopped;
    nodeset.stopped.clear();
  }
  const Members lists{at.object("nodes_by_state")};
  for (const auto& [word, count] : at.object("states").items()) {
    if (!count.is_number_unsigned()) continue;
    nodeset.states.push_back({.word = printable(word),
                              .count = count.get<std::size_t>(),
                              .nodes = lists.text(word.c_str())});
  }
  return nodeset;
}

RequestReport to_request(const Json& json) {
  const Members at{json};
  return {.name = at.text("name"),
          .group = at.text("group"),
          .nodeset = at.text("nodeset"),
          .state = at.text("state"),
          .job = static_cast<JobId>(at.number("job")),
          .attempt = at.number("attempt"),
          .nodes = at.text("nodes"),
          .count = at.number("n"),
          .created = at.time("created"),
          .gives_up = at.time("gives_up"),
          .retry_at = at.time("retry_at"),
          .reason = at.text("reason"),
          .message = at.text("message"),
          .estimate = at.time("estimate")};
}

VmReport to_vm(const Json& json) {
  const Members at{json};
  VmReport vm{.nodeset = at.text("nodeset"),
              .nodes = at.text("nodes"),
              .count = at.number("n"),
              .status = at.text("status"),
              .zone = at.text("zone"),
              .ends = at.time("ends"),
              .jobs = {},
              .jobs_count = at.number("jobs_n")};
  for (const Json& job : at.list("jobs")) {
    if (job.is_number_unsigned()) vm.jobs.push_back(job.get<JobId>());
  }
  vm.jobs_count = std::max(vm.jobs_count, vm.jobs.size());
  return vm;
}

JobReport to_job(const Json& json) {
  const Members at{json};
  return {.id = static_cast<JobId>(at.number("id")),
          .user = at.text("user"),
          .nodeset = at.text("nodeset"),
          .nodes = at.text("nodes"),
          .count = at.number("n"),
          .request = at.text("request"),
          .phase = at.text("phase"),
          .retry_at = at.time("retry_at"),
          .since = at.time("since"),
          .note = at.text("note")};
}

ActionReport to_action(const Json& json) {
  const Members at{json};
  return {.when = at.time("time"),
          .rule = at.text("rule"),
          .what = at.text("what"),
          .target = at.text("target"),
          .nodes = at.text("nodes"),
          .job = static_cast<JobId>(at.number("job")),
          .why = at.text("why"),
          .result = at.text("result"),
          .error = at.text("error"),
          .times = at.number("times")};
}

RetryReport to_retry(const Json& json) {
  const Members at{json};
  return {.nodes = at.text("nodes"),
          .count = at.number("n"),
          .failures = at.number("attempts") + at.number("refusals"),
          .next = at.time("next"),
          .why = at.text("why")};
}

ShutWayReport to_shut_way(const Json& json) {
  const Members at{json};
  return {.nodeset = at.text("nodeset"),
          .job = static_cast<JobId>(at.number("job")),
          .nodes = at.text("nodes"),
          .count = at.number("n"),
          .group = at.text("group"),
          .until = at.time("until"),
          .why = at.text("why")};
}

void read_jobs(const Members& at, SweeperReport& report) {
  bool is_any_running = false;
  for (const Json& json : at.list("jobs")) {
    if (Members{json}.text("state") == "waiting")
      report.waiting.push_back(to_job(json));
    else
      is_any_running = true;
  }
  report.waiting_omitted = at.number("jobs_waiting_omitted");
  // Those that wait are listed first: without one that runs, only such are left out.
  if (!is_any_running)
    report.waiting_omitted =
        std::max<std::size_t>(report.waiting_omitted, at.number("jobs_omitted"));
}

void read_lists(const Members& at, SweeperReport& report) {
  for (const Json& json : at.list("nodesets")) report.nodesets.push_back(to_nodeset(json));
  for (const Json& json : at.list("requests")) report.requests.push_back(to_request(json));
  for (const Json& json : at.list("vms")) report.vms.push_back(to_vm(json));
  read_jobs(at, report);
  report.requests_omitted = at.number("requests_omitted");
  report.active_requests = at.number("active_requests");
  report.vms_omitted = at.number("vms_omitted");
  for (const Json& json : at.list("retries")) report.retries.push_back(to_retry(json));
  for (const Json& json : at.list("shut_ways")) report.shut_ways.push_back(to_shut_way(json));
  report.shut_ways_omitted = at.number("shut_ways_omitted");
  for (const Json& json : at.list("repairs")) {
    const Members repair{json};
    if (repair.flag("given_up"))
      report.given_up.push_back(
          {repair.text("node"), repair.number("count"), repair.text("reason")});
  }
  for (const Json& json : at.list("leaks")) {
    const Members leak{json};
    report.leaks.push_back({leak.text("kind"), leak.text("target"), leak.text("why")});
  }
  for (const Json& json : at.list("actions")) report.actions.push_back(to_action(json));
}

void add_nodes(std::set<NodeName>& nodes, const std::string& folded) {
  if (const auto some = expand_hostlist(folded)) nodes.insert(some->begin(), some->end());
}

/// None of the list is one of these.
bool is_apart(const std::set<NodeName>& nodes, const std::string& folded) {
  const auto some = expand_hostlist(folded);
  return some && std::none_of(some->begin(), some->end(), [&](const NodeName& node) {
           return nodes.contains(node);
         });
}

}  // namespace

bool RequestReport::is_waiting() const {
  return state == "ACCEPTED" || state == "CREATING" || state == "PROVISIONING";
}

Result<SweeperReport> parse_report(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Error{ErrorKind::Invalid, "no status of a sweeper"};
  const Members at{json};
  const Members round{at.object("last_round")};
  SweeperReport report;
  report.cluster = at.text("cluster");
  report.region = at.text("region");
  report.state = at.text("state");
  report.why = at.text("why");
  report.pid = at.number("pid");
  report.round = at.number("round");
  report.groups = at.number("groups");
  report.interval = Seconds{at.number("interval_seconds")};
  report.last_complete = at.time("last_complete_round");
  report.written = std::max({at.time("now"), round.time("started"), report.last_complete});
  report.failures_in_a_row = at.number("failures_in_a_row");
  report.took = std::chrono::milliseconds{round.number("milliseconds")};
  report.calls = round.number("calls");
  report.is_blind = !at.flag("looked", true);
  report.failed = round.number("failed");
  report.postponed = round.number("postponed");
  read_lists(at, report);
  return report;
}

SweeperReport only_of(SweeperReport report, const std::vector<std::string>& nodesets) {
  if (nodesets.empty()) return report;
  const auto is_other = [&](const std::string& name) {
    return std::find(nodesets.begin(), nodesets.end(), name) == nodesets.end();
  };
  std::erase_if(report.nodesets, [&](const auto& item) { return is_other(item.name); });
  std::erase_if(report.requests, [&](const auto& item) { return is_other(item.nodeset); });
  std::erase_if(report.vms, [&](const auto& item) { return is_other(item.nodeset); });
  std::erase_if(report.waiting, [&](const auto& item) { return is_other(item.nodeset); });
  std::erase_if(report.shut_ways, [&](const auto& item) { return is_other(item.nodeset); });
  std::set<NodeName> nodes;
  for (const NodesetReport& nodeset : report.nodesets) {
    for (const NodesByState& state : nodeset.states) add_nodes(nodes, state.nodes);
  }
  std::erase_if(report.retries, [&](const auto& item) { return is_apart(nodes, item.nodes); });
  std::erase_if(report.given_up, [&](const auto& item) { return is_apart(nodes, item.node); });
  report.actions.clear();
  report.is_part = true;
  return report;
}

bool is_stale(const SweeperReport& report, TimePoint now) {
  // After failed looks it waits up to eight times as long; and a look may take its time.
  constexpr Seconds kLook{120};
  // Where it is passive it may look at who is in charge every five minutes only.
  constexpr Seconds kPassive{300};
  const Seconds interval =
      report.state == "passive" ? std::max(report.interval, kPassive) : report.interval;
  const int pauses = report.failures_in_a_row > 0 ? 9 : 3;
  return now - report.written > kLook + pauses * interval;
}

namespace {

/// ", as delete_instances a-0 (403: …)"; empty if it is not told.
std::string last_failure(const SweeperReport& report) {
  const auto found = std::find_if(report.actions.rbegin(),
                                  report.actions.rend(),
                                  [](const auto& action) { return action.result == "failed"; });
  if (found == report.actions.rend()) return {};
  return fmt::format(", as {} {} ({})",
                     found->what,
                     found->nodes.empty() ? found->target : found->nodes,
                     found->error);
}

void add_sweeper_trouble(std::vector<std::string>& trouble,
                         const SweeperReport& report,
                         TimePoint now) {
  if (report.state == "stopped")
    trouble.push_back(fmt::format("the sweeper was stopped {} ago: systemctl start flex-sweeper",
                                  span_text(now - report.written)));
  else if (is_stale(report, now))
    trouble.push_back(
        fmt::format("the sweeper (pid {}) has said nothing for {}, and should every {}: "
                    "systemctl status flex-sweeper",
                    report.pid,
                    span_text(now - report.written),
                    span_text(report.interval)));
  if (report.failures_in_a_row > 0)
    trouble.push_back(fmt::format("the sweeper's last {} look{} failed, nothing is decided: {}",
                                  report.failures_in_a_row,
                                  report.failures_in_a_row == 1 ? "" : "s",
                                  report.why));
  if (report.failed > 0)
    trouble.push_back(
        fmt::format("{} of the sweeper's last actions failed{}: journalctl -u flex-sweeper -g "
                    "action_failed",
                    report.failed,
                    last_failure(report)));
}

}  // namespace

std::vector<std::string> find_trouble(const SweeperReport& report, TimePoint now) {
  std::vector<std::string> trouble;
  add_sweeper_trouble(trouble, report, now);
  for (const NodesetReport& nodeset : report.nodesets) {
    if (nodeset.stopped.empty()) continue;
    trouble.push_back(fmt::format("nodeset {} is stopped: {}; mend it, then: flexctl resume {}",
                                  nodeset.name,
                                  nodeset.stopped,
                                  nodeset.name));
  }
  for (const RepairReport& repair : report.given_up)
    trouble.push_back(
        fmt::format("node {} stays drained, {} new VMs have not mended it: {}; see to it, then: "
                    "scontrol update NodeName={} State=UNDRAIN",
                    repair.node,
                    repair.count,
                    repair.reason,
                    repair.node));
  for (const LeakReport& leak : report.leaks)
    trouble.push_back(fmt::format("left behind: {} {}: {}", leak.kind, leak.target, leak.why));
  return trouble;
}

}  // namespace flex

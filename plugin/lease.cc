// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/lease.h"

#include "lib/core/token.h"
#include "plugin/ask.h"
#include "plugin/cache.h"
#include "plugin/earliest.h"
#include "plugin/slurm_calls.h"
#include "plugin/variables.h"

#include <slurm/slurm.h>

#include <array>
#include <cstdlib>
#include <unistd.h>

namespace flex::plugin {

namespace {

/// No job waits longer than this for what is good to know.
constexpr std::chrono::seconds kPatience{2};

TimePoint now() {
  return std::chrono::floor<Seconds>(std::chrono::system_clock::now());
}

/// 0 if Slurm does not tell.
std::uint32_t item(spank_t spank, spank_item_t which) {
  std::uint32_t value = 0;
  return spank_get_item(spank, which, &value) == ESPANK_SUCCESS ? value : 0;
}

/// slurmstepd has its node's name in its own environment; a host can have several.
NodeNames node_names() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const char* node = std::getenv("SLURMD_NODENAME");
  const std::string short_host =
      std::string(host.data()).substr(0, std::string(host.data()).find('.'));
  return {.node = node != nullptr ? node : short_host, .host = short_host};
}

/// The job's on this node; nothing if Slurm does not tell what is needed.
std::optional<CachePlace> cache_place(spank_t spank,
                                      const Arguments& arguments,
                                      const NodeNames& names) {
  const std::string spool = slurmd_spool_dir();
  const std::string directory =
      arguments.cache_dir.empty() ? spool + "/flex-start" : arguments.cache_dir;
  const JobId job = item(spank, S_JOB_ID);
  if (job == 0 || (arguments.cache_dir.empty() && spool.empty())) return std::nullopt;
  return CachePlace{.directory = expand_path(directory, names), .job = job};
}

/// Of the job's environment; nothing where it has none, or more than any job needs.
std::optional<std::string> job_variable(spank_t spank, const std::string& name) {
  constexpr int kLongest = 65536;
  std::string value(kLongest, '\0');
  if (spank_getenv(spank, name.c_str(), value.data(), kLongest) != ESPANK_SUCCESS)
    return std::nullopt;
  value.resize(value.find('\0'));
  return value;
}

/// Those of the job's own. A step from outside has its own nodes in the first and the job's in the
/// second.
std::vector<std::string> node_lists(spank_t spank) {
  std::vector<std::string> lists;
  for (const char* name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    if (auto list = job_variable(spank, name)) lists.push_back(std::move(*list));
  }
  return lists;
}

/// Those of all parts of a heterogeneous job. Of another one, from inside which this job was
/// submitted, none.
std::vector<std::string> part_lists(spank_t spank) {
  constexpr int kMostParts = 128;
  const std::string job = std::to_string(item(spank, S_JOB_ID));
  std::vector<std::string> lists;
  bool is_ours = false;
  for (int part = 0; part < kMostParts; ++part) {
    const std::string ending = "_HET_GROUP_" + std::to_string(part);
    auto list = job_variable(spank, "SLURM_JOB_NODELIST" + ending);
    if (!list) break;
    lists.push_back(std::move(*list));
    is_ours = is_ours || job_variable(spank, "SLURM_JOB_ID" + ending) == job;
  }
  return is_ours ? lists : std::vector<std::string>{};
}

/// slurmctld's word as a line for the cache.
std::string ask_slurmctld(const LeaseQuestion& question, Deadline deadline) {
  const auto line = ask_child(
      [&question]() -> std::string {
        const auto leases = load_leases(question);
        if (!leases) return "";
        return to_line({.lease = earliest(leases->items, now()), .is_whole = leases->is_whole},
                       now());
      },
      deadline);
  if (line && !line->empty()) return *line;
  slurm_info("flex-start: slurmctld did not say in time when this job's VMs end");
  return unanswered_line(now());
}

/// What the job's batch script was told, where that came along with the environment.
std::optional<NodeLease> inherited_lease(spank_t spank) {
  if (job_variable(spank, kJobVariable) != std::to_string(item(spank, S_JOB_ID)))
    return std::nullopt;
  return from_line(write_token({{"end", job_variable(spank, kEndVariable).value_or("")},
                                {"nodeset", job_variable(spank, kNodesetVariable).value_or("")},
                                {"request", job_variable(spank, kRequestVariable).value_or("")}}),
                   now())
      .lease;
}

}  // namespace

std::optional<NodeLease> find_lease(spank_t spank, const Arguments& arguments) {
  const Deadline deadline = std::chrono::steady_clock::now() + kPatience;
  const std::uint32_t step = item(spank, S_JOB_STEPID);
  if (!arguments.tells_lease || step == SLURM_EXTERN_CONT) return std::nullopt;
  const NodeNames names = node_names();
  const auto place = cache_place(spank, arguments, names);
  if (!place) return std::nullopt;
  const auto ask = [&] {
    const bool is_only_one = step == SLURM_BATCH_SCRIPT || step == SLURM_INTERACTIVE_STEP;
    return ask_slurmctld({.node = names.node,
                          .node_lists = node_lists(spank),
                          .part_lists = part_lists(spank),
                          .is_only_one = is_only_one},
                         deadline);
  };
  const auto is_still_good = [](const std::string& line) { return is_good(line, now()); };
  const auto line = read_or_ask(*place, deadline, is_still_good, ask);
  if (!line) {
    slurm_info("flex-start: %s; the job is not told when its VMs end", line.error().what.c_str());
    return std::nullopt;
  }
  const Answer answer = from_line(*line, now());
  if (answer.is_whole) return answer.lease;
  std::vector<NodeLease> known;
  for (const auto& lease : {answer.lease, inherited_lease(spank)}) {
    if (lease) known.push_back(*lease);
  }
  return earliest(known, now());
}

void tell_tasks(spank_t spank, const std::optional<NodeLease>& lease) {
  const auto set = [spank](const char* name, const std::string& value) {
    if (value.empty())
      spank_unsetenv(spank, name);
    else
      spank_setenv(spank, name, value.c_str(), 1);
  };
  set(kEndVariable, lease ? std::to_string(lease->end.time_since_epoch().count()) : "");
  set(kNodesetVariable, lease ? lease->nodeset : "");
  set(kRequestVariable, lease ? lease->request : "");
  set(kJobVariable, lease ? std::to_string(item(spank, S_JOB_ID)) : "");
}

void forget_job(spank_t spank, const Arguments& arguments) {
  const auto place = cache_place(spank, arguments, node_names());
  if (!arguments.tells_lease || !place) return;
  const auto removed = remove_cached(*place);
  if (!removed) slurm_info("flex-start: %s", removed.error().what.c_str());
}

}  // namespace flex::plugin

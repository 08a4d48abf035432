// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/lease.h"

#include "plugin/ask.h"
#include "plugin/cache.h"
#include "plugin/earliest.h"
#include "plugin/slurm_calls.h"

#include <slurm/slurm.h>

#include <array>
#include <cstdlib>
#include <unistd.h>

namespace flex::plugin {

namespace {

/// No job waits longer than this for what is good to know.
constexpr std::chrono::seconds kPatience{2};

constexpr const char* kEnd = "SLURM_FLEX_END_TIME";
constexpr const char* kNodeset = "SLURM_FLEX_NODESET";
constexpr const char* kRequest = "SLURM_FLEX_REQUEST";

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

/// The job's nodes, of all components where it has several.
std::vector<std::string> node_lists(spank_t spank) {
  constexpr int kMostComponents = 128;
  std::vector<std::string> lists;
  if (auto list = job_variable(spank, "SLURM_JOB_NODELIST")) lists.push_back(std::move(*list));
  for (int component = 0; component < kMostComponents; ++component) {
    auto list = job_variable(spank, "SLURM_JOB_NODELIST_HET_GROUP_" + std::to_string(component));
    if (!list) break;
    lists.push_back(std::move(*list));
  }
  return lists;
}

/// slurmctld's word as a line for the cache. Without an answer there is none for the job at all:
/// asking again would hold up each of its steps.
std::string ask_slurmctld(const LeaseQuestion& question, Deadline deadline) {
  const auto line = ask_child(
      [&question]() -> std::string {
        const auto leases = load_leases(question);
        return leases ? to_line(earliest(*leases, now())) : "";
      },
      deadline);
  if (line && !line->empty()) return *line;
  slurm_info("flex-start: slurmctld did not say in time when this job's VMs end");
  return to_line(std::nullopt);
}

}  // namespace

std::optional<NodeLease> find_lease(spank_t spank, const Arguments& arguments) {
  const Deadline deadline = std::chrono::steady_clock::now() + kPatience;
  const std::uint32_t step = item(spank, S_JOB_STEPID);
  if (!arguments.tells_lease || step == SLURM_EXTERN_CONT) return std::nullopt;
  const NodeNames names = node_names();
  const auto place = cache_place(spank, arguments, names);
  if (!place) return std::nullopt;
  const auto line = read_or_ask(*place, deadline, [&] {
    return ask_slurmctld({.node = names.node,
                          .node_lists = node_lists(spank),
                          .is_batch = step == SLURM_BATCH_SCRIPT},
                         deadline);
  });
  if (line) return from_line(*line, now());
  slurm_info("flex-start: %s; the job is not told when its VMs end", line.error().what.c_str());
  return std::nullopt;
}

void tell_tasks(spank_t spank, const std::optional<NodeLease>& lease) {
  const auto set = [spank](const char* name, const std::string& value) {
    if (value.empty())
      spank_unsetenv(spank, name);
    else
      spank_setenv(spank, name, value.c_str(), 1);
  };
  set(kEnd, lease ? std::to_string(lease->end.time_since_epoch().count()) : "");
  set(kNodeset, lease ? lease->nodeset : "");
  set(kRequest, lease ? lease->request : "");
}

void forget_job(spank_t spank, const Arguments& arguments) {
  const auto place = cache_place(spank, arguments, node_names());
  if (!arguments.tells_lease || !place) return;
  const auto removed = remove_cached(*place);
  if (!removed) slurm_info("flex-start: %s", removed.error().what.c_str());
}

}  // namespace flex::plugin

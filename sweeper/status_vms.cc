// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/node_lease.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/node_state.h"
#include "sweeper/status_parts.h"
#include "sweeper/vm_origins.h"
#include "sweeper/words.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace flex::status {

namespace {

/// So many jobs are named in a row.
constexpr std::size_t kMostJobs = 16;

struct Vm {
  NodeName name{};
  std::string nodeset{};
  std::string group{};
  std::string request{};
  std::string zone{};
  std::string_view status{};
  TimePoint since{};  ///< 0: not known
  TimePoint ends{};   ///< 0: not known
  std::vector<JobId> jobs{};
};

/// "us-central1-a" of ".../zones/us-central1-a/instances/a-0"; empty if it has none.
std::string zone_of(std::string_view url) {
  constexpr std::string_view kBefore = "/zones/";
  const std::size_t at = url.find(kBefore);
  if (at == std::string_view::npos) return {};
  url.remove_prefix(at + kBefore.size());
  return std::string(url.substr(0, url.find('/')));
}

/// Google lists no time of creation: it is the request's run duration before the end. Without the
/// request, which is deleted first: when the machine booted, or its first job began.
TimePoint since_of(const Instance& instance,
                   const ResizeRequest* request,
                   const NodePicture* node,
                   TimePoint now) {
  if (request != nullptr && instance.terminates && request->run_duration > Seconds{0})
    return *instance.terminates - request->run_duration;
  if (node == nullptr || node->node == nullptr) return {};
  const TimePoint booted = node->node->boot_time;
  const TimePoint earliest = instance.terminates ? *instance.terminates - kMaxRunDuration : now;
  if (is_up(*node->node) && booted >= earliest && booted <= now && booted != TimePoint{})
    return booted;
  TimePoint first{};
  for (const Job* job : node->jobs) {
    if (!job->is_configuring && (first == TimePoint{} || job->start_time < first))
      first = job->start_time;
  }
  return first;
}

std::string request_of(const ResizeRequest* request, const NodePicture* node) {
  if (request != nullptr) return request->name.text;
  if (node == nullptr || node->node == nullptr) return {};
  const auto said = read_lease(node->node->extra);
  return said ? said->request : std::string{};
}

std::vector<Vm> find_vms(const Look& look) {
  VmOrigins origins(look.shot);
  std::vector<Vm> vms;
  for (const SweptGroup& group : look.shot.groups) {
    for (const Instance& instance : group.instances) {
      if (instance.is_queued()) continue;
      // A further VM of the same name is nobody's.
      const NodePicture* node = look.picture.find(instance.name);
      if (node != nullptr && node->entry.item != &instance) node = nullptr;
      const ResizeRequest* request = origins.find(group, instance.name);
      Vm vm{.name = instance.name,
            .nodeset = group.nodeset,
            .group = group.group.name.text,
            .request = request_of(request, node),
            .zone = zone_of(instance.url),
            .status = vm_word(instance, node),
            .since = since_of(instance, request, node, look.shot.now),
            .ends = instance.terminates.value_or(TimePoint{})};
      if (node != nullptr) {
        for (const Job* job : node->jobs) vm.jobs.push_back(job->id);
      }
      vms.push_back(std::move(vm));
    }
  }
  return vms;
}

struct Row {
  std::vector<NodeName> nodes{};
  std::set<std::string> requests{};
  std::set<std::string> zones{};
  std::set<JobId> jobs{};
  TimePoint since{};  ///< of the oldest
  TimePoint ends{};   ///< of the first that ends
};

using Key = std::tuple<std::string,          // nodeset
                       TimePoint,            // about when it ends
                       std::string,          // group
                       std::string_view,     // status
                       std::string,          // request
                       std::vector<JobId>>;  // jobs

TimePoint earlier(TimePoint left, TimePoint right) {
  if (left == TimePoint{} || right == TimePoint{}) return std::max(left, right);
  return std::min(left, right);
}

/// How much alike VMs must be to be one row.
struct Likeness {
  Seconds ends{};        ///< they end within the same so many seconds
  bool is_close = true;  ///< of one request, with the same jobs
};

std::map<Key, Row> fold(const std::vector<Vm>& vms, const Likeness& likeness) {
  std::map<Key, Row> rows;
  for (const Vm& vm : vms) {
    const TimePoint about{vm.ends.time_since_epoch() / likeness.ends * likeness.ends};
    Row& row = rows[{vm.nodeset,
                     about,
                     vm.group,
                     vm.status,
                     likeness.is_close ? vm.request : std::string{},
                     likeness.is_close ? vm.jobs : std::vector<JobId>{}}];
    row.nodes.push_back(vm.name);
    row.requests.insert(vm.request);
    row.zones.insert(vm.zone);
    row.jobs.insert(vm.jobs.begin(), vm.jobs.end());
    row.since = earlier(row.since, vm.since);
    row.ends = earlier(row.ends, vm.ends);
  }
  return rows;
}

/// The one that all have in common; empty: they differ.
std::string common(const std::set<std::string>& texts) {
  return texts.size() == 1 ? *texts.begin() : std::string{};
}

Json to_json(const Key& key, const Row& row, TimePoint now) {
  Json jobs = Json::array();
  for (const JobId job : row.jobs) {
    if (jobs.size() < kMostJobs) jobs.push_back(job);
  }
  Json json{{"nodeset", std::get<0>(key)},
            {"group", std::get<2>(key)},
            {"request", common(row.requests)},
            {"nodes", fold_hostlist(row.nodes)},
            {"n", row.nodes.size()},
            {"status", std::get<3>(key)},
            {"zone", common(row.zones)},
            {"since", iso(row.since)},
            {"ends", iso(row.ends)},
            {"jobs", std::move(jobs)},
            {"jobs_n", row.jobs.size()}};
  if (row.ends != TimePoint{}) json["left_seconds"] = std::max(row.ends - now, Seconds{0}).count();
  return json;
}

}  // namespace

CutList vms(const Look& look) {
  using std::chrono::minutes;
  constexpr std::array<Likeness, 4> kLikenesses{{{.ends = minutes{1}, .is_close = true},
                                                 {.ends = minutes{15}, .is_close = true},
                                                 {.ends = minutes{15}, .is_close = false},
                                                 {.ends = minutes{4 * 60}, .is_close = false}}};
  const std::vector<Vm> all = find_vms(look);
  std::map<Key, Row> rows;
  for (const Likeness& likeness : kLikenesses) {
    rows = fold(all, likeness);
    if (rows.size() <= kMostRows) break;
  }
  CutList list;
  for (const auto& [key, row] : rows) {
    if (list.items.size() < kMostRows)
      list.items.push_back(to_json(key, row, look.shot.now));
    else
      list.omitted += row.nodes.size();
  }
  return list;
}

}  // namespace flex::status

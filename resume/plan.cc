// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/plan.h"

#include "lib/core/names.h"
#include "lib/fleet/fit.h"
#include "lib/fleet/groups.h"
#include "lib/fleet/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace flex {

namespace {

/// What the nodeset's groups hold, by node.
struct Holdings {
  std::unordered_set<NodeName> requested{};  ///< in an active request, or waiting one by one
  std::unordered_set<NodeName> served{};     ///< in a request that has succeeded

  struct Entry {
    const Instance* instance;
    const MigName* group;
  };

  std::unordered_map<NodeName, std::vector<Entry>> entries{};
};

void add_requests_to(Holdings& holdings, const GroupView& group) {
  for (const ResizeRequest& request : group.requests) {
    auto& nodes = request.state == RequestState::Succeeded ? holdings.served : holdings.requested;
    if (request.is_active() || request.state == RequestState::Succeeded)
      nodes.insert(request.nodes.begin(), request.nodes.end());
  }
}

Holdings holdings_of(const NodesetView& view,
                     const std::string& cluster,
                     const std::string& nodeset) {
  Holdings holdings;
  for (const auto& [name, group] : view.groups) {
    if (!group.group || !is_owned(group.group->description, cluster, nodeset)) continue;
    add_requests_to(holdings, group);
    const bool waits_alone = group.group->kind != GroupKind::Queued;
    for (const Instance& instance : group.instances) {
      holdings.entries[instance.name].push_back({.instance = &instance, .group = &name});
      if (waits_alone && instance.is_queued()) holdings.requested.insert(instance.name);
    }
  }
  return holdings;
}

template <class IsTaken>
void raise_attempt(RequestKey& key, const IsTaken& is_taken) {
  while (is_taken(request_name(key))) ++key.attempt;
}

/// A queued entry that no active request accounts for is what a cancelled or failed one leaves
/// for a moment, unless its request has just been served.
bool has_vm(const Instance& instance, bool is_served) {
  if (instance.is_queued()) return is_served;
  return !instance.is_dead() && !instance.is_leaving();
}

bool has_vm(const Holdings& holdings, const NodeName& node) {
  const auto entries = holdings.entries.find(node);
  if (entries == holdings.entries.end()) return false;
  const bool is_served = holdings.served.contains(node);
  return std::any_of(entries->second.begin(), entries->second.end(), [&](const auto& entry) {
    return has_vm(*entry.instance, is_served);
  });
}

/// An active request and its group.
struct Active {
  const ResizeRequest* request;
  const MigName* group;
};

/// What flex-resume knows of nodes: the groups, and the jobs that hold nodes.
class SeenFacts : public NodeFacts {
 public:
  SeenFacts(const std::map<std::size_t, Holdings>& holdings,
            const FleetView& fleet,
            const Config& config,
            const Demand& demand)
      : holdings_(holdings), config_(config), demand_(demand) {
    for (const Job& job : demand.living) {
      for (const NodeName& node : job.nodes) jobs_[node].push_back(&job);
    }
    for (const auto& [index, view] : fleet) {
      for (const auto& [name, group] : view.groups) add_active(name, group);
    }
  }

  [[nodiscard]] const std::vector<const Job*>& jobs_on(const NodeName& node) const override {
    static const std::vector<const Job*> kNone;
    const auto found = jobs_.find(node);
    return found == jobs_.end() ? kNone : found->second;
  }

  [[nodiscard]] bool lacks_vm(const NodeName& node) const override {
    const Config::Place* const place = config_.find(node);
    const auto found = place == nullptr ? holdings_.end() : holdings_.find(place->nodeset);
    return found != holdings_.end() && !has_vm(found->second, node) &&
           !demand_.not_coming.contains(node);
  }

  [[nodiscard]] std::vector<const ResizeRequest*> requests_on(const NodeName& node) const override {
    std::vector<const ResizeRequest*> requests;
    for (const Active& active : active_on(node)) requests.push_back(active.request);
    return requests;
  }

  [[nodiscard]] const std::vector<Active>& active_on(const NodeName& node) const {
    static const std::vector<Active> kNone;
    const auto found = active_.find(node);
    return found == active_.end() ? kNone : found->second;
  }

 private:
  void add_active(const MigName& name, const GroupView& group) {
    for (const ResizeRequest& request : group.requests) {
      if (!request.is_active() || !is_our_request(request)) continue;
      for (const NodeName& node : request.nodes)
        active_[node].push_back({.request = &request, .group = &name});
    }
  }

  const std::map<std::size_t, Holdings>& holdings_;
  const Config& config_;
  const Demand& demand_;
  std::unordered_map<NodeName, std::vector<const Job*>> jobs_{};
  std::unordered_map<NodeName, std::vector<Active>> active_{};
};

/// One job's nodes of one nodeset, or jobless ones.
struct Ask {
  std::size_t nodeset;
  const Job* job;
  std::vector<NodeName> nodes;
  Seconds least_run{0};

  [[nodiscard]] JobId id() const { return job == nullptr ? 0 : job->id; }
};

/// How long the VMs are to live, and how that was computed.
struct Run {
  Seconds duration{};
  std::string how{};
};

class Planner {
 public:
  Planner(const Config& config,
          const std::string& cluster,
          const FleetView& fleet,
          const PlanOptions& options,
          const Demand& demand)
      : config_(config), cluster_(cluster), fleet_(fleet), options_(options), shut_(demand.shut) {
    plan_.cluster = cluster;
    for (const auto& [index, view] : fleet) {
      holdings_[index] = holdings_of(view, cluster, config.nodesets[index].name);
    }
    if (!demand.living.empty())
      facts_ = std::make_unique<SeenFacts>(holdings_, fleet, config, demand);
  }

  void add_job(const Demand::JobNodes& wanted) {
    for (auto& [nodeset, nodes] : by_nodeset(wanted.nodes))
      add({.nodeset = nodeset,
           .job = &wanted.job,
           .nodes = std::move(nodes),
           .least_run = wanted.least_run});
  }

  void add_jobless(const std::vector<NodeName>& jobless) {
    for (auto& [nodeset, nodes] : by_nodeset(jobless)) {
      const std::vector<Route> routes = routes_of(config_.nodesets[nodeset], options_.step);
      if (routes.front().mode != Mode::Queued) {
        add({.nodeset = nodeset, .job = nullptr, .nodes = std::move(nodes)});
        continue;
      }
      // Nobody waits for several jobless nodes at once: one request each, so that one that waits
      // does not hold up the others.
      for (NodeName& node : nodes)
        add({.nodeset = nodeset, .job = nullptr, .nodes = {std::move(node)}});
    }
  }

  ResumePlan finish() {
    for (auto& [key, group] : groups_) plan_.groups.push_back(std::move(group));
    for (GroupPlan& group : loose_) plan_.groups.push_back(std::move(group));
    return std::move(plan_);
  }

 private:
  [[nodiscard]] std::map<std::size_t, std::vector<NodeName>> by_nodeset(
      const std::vector<NodeName>& nodes) const {
    std::map<std::size_t, std::vector<NodeName>> sorted;
    for (const NodeName& node : nodes) sorted[config_.find(node)->nodeset].push_back(node);
    return sorted;
  }

  void add(Ask ask) {
    const auto view = fleet_.find(ask.nodeset);
    if (view == fleet_.end() || view->second.error) {
      Error error = view == fleet_.end()
                        ? Error{ErrorKind::Internal, "the nodeset was not looked at"}
                        : *view->second.error;
      return refuse(std::move(ask), std::move(error));
    }
    const NodesetConfig& nodeset = config_.nodesets[ask.nodeset];
    std::unordered_set<NodeName> freed;
    if (auto error = give_up_wrong(ask, freed)) return refuse(std::move(ask), *std::move(error));
    ask.nodes = without_backed(holdings_[ask.nodeset], std::move(ask.nodes), freed);
    if (ask.nodes.empty()) return;
    bool is_told = false;
    for (const Route& route : open_routes(ask, nodeset)) {
      const RunDuration duration = run_duration(nodeset, ask.job, route.mode);
      if (ask.job != nullptr && !is_told) {
        std::string note = shortfall_note(duration, ask.job->time_limit);
        is_told = !note.empty();
        if (is_told) plan_.capped.push_back({.job = ask.id(), .note = std::move(note)});
      }
      const Run run{.duration = std::max(duration.run, ask.least_run),
                    .how = run_duration_text(nodeset, ask.job, route.mode)};
      if (route.mode == Mode::BulkInsert)
        add_bulk(ask, route, run);
      else
        add_to_groups(ask, route, run);
    }
  }

  /// The ways that are not shut. Who has nothing else waits in none of them for ever: then all.
  [[nodiscard]] std::vector<Route> open_routes(const Ask& ask, const NodesetConfig& nodeset) const {
    std::vector<Route> all = routes_of(nodeset, options_.step);
    if (shut_.empty()) return all;
    std::vector<Route> open;
    std::copy_if(all.begin(), all.end(), std::back_inserter(open), [&](const Route& route) {
      return !is_shut(ask, route);
    });
    return open.empty() && !options_.is_second ? all : open;
  }

  [[nodiscard]] bool is_shut(const Ask& ask, const Route& route) const {
    if (route.mode == Mode::BulkInsert) return false;
    return std::any_of(ask.nodes.begin(), ask.nodes.end(), [&](const NodeName& node) {
      const auto name_of = [&](const std::string& variant) {
        return group_name(ask, node, variant);
      };
      const std::string now = fitting_variant(ask, route, name_of);
      // A zone of a race, once it has been renewed, may be in either.
      return shut_.contains({node, free_name(ask, route, name_of)}) ||
             (route.is_race && (shut_.contains({node, name_of(now)}) ||
                                shut_.contains({node, name_of(with_more(now, "r"))})));
    });
  }

  /// The group of the route's variant that the node belongs in.
  [[nodiscard]] MigName group_name(const Ask& ask,
                                   const NodeName& node,
                                   const std::string& variant) const {
    const NodesetConfig& nodeset = config_.nodesets[ask.nodeset];
    if (nodeset.mig_scope != MigScope::Job || ask.id() == 0)
      return group_of_node(cluster_, nodeset, config_.find(node)->index, variant);
    const std::size_t part = positions_of(ask).at(node) / group_capacity(nodeset);
    return job_group_name(cluster_, nodeset.name, ask.id(), part, variant);
  }

  /// Plans to cancel what was asked for on behalf of others, or for a part of what the job needs;
  /// the nodes that are then free to be asked for. An error if that cannot be cancelled now.
  std::optional<Error> give_up_wrong(const Ask& ask, std::unordered_set<NodeName>& freed) {
    if (!facts_ || ask.job == nullptr || options_.is_second) return std::nullopt;
    std::vector<std::pair<Active, std::string>> wrong;
    std::set<const ResizeRequest*> judged;
    for (const NodeName& node : ask.nodes) {
      for (const Active& active : facts_->active_on(node)) {
        if (!judged.insert(active.request).second) continue;
        Judgement judgement = judge(config_, *facts_, *active.request);
        if (judgement.fit != Fit::Wrong) continue;
        if (active.request->state != RequestState::Accepted)
          return Error{ErrorKind::Retry,
                       fmt::format("request {} of group {} is to be cancelled first, which is not "
                                   "possible now: {}",
                                   active.request->name,
                                   *active.group,
                                   judgement.why),
                       "OTHER_REQUEST"};
        wrong.emplace_back(active, std::move(judgement.why));
      }
    }
    for (auto& [active, why] : wrong) {
      freed.insert(active.request->nodes.begin(), active.request->nodes.end());
      if (!cancelled_.insert(active.request).second) continue;
      plan_.cancels.push_back({.group = *active.group,
                               .request = active.request->name,
                               .job = request_job(*active.request),
                               .nodes = active.request->nodes,
                               .why = std::move(why)});
    }
    return std::nullopt;
  }

  void refuse(Ask ask, Error error) {
    plan_.refusals.push_back(
        {.job = ask.id(), .nodes = std::move(ask.nodes), .error = std::move(error)});
  }

  /// The how-manieth of the job's nodes in the nodeset each is, those that have their VM among
  /// them.
  [[nodiscard]] std::unordered_map<NodeName, std::size_t> positions_of(const Ask& ask) const {
    std::unordered_map<NodeName, std::size_t> positions;
    if (ask.job == nullptr) return positions;
    for (const NodeName& node : ask.job->nodes) {
      const Config::Place* const place = config_.find(node);
      if (place != nullptr && place->nodeset == ask.nodeset)
        positions.emplace(node, positions.size());
    }
    // A resume file alone may not say all of them.
    for (const NodeName& node : ask.nodes) positions.emplace(node, positions.size());
    return positions;
  }

  void add_bulk(const Ask& ask, const Route& route, const Run& run) {
    for (std::size_t at = 0; at < ask.nodes.size(); at += kMaxRequestSize) {
      const auto begin = ask.nodes.begin() + static_cast<std::ptrdiff_t>(at);
      const auto end = ask.nodes.begin() + static_cast<std::ptrdiff_t>(
                                               std::min(at + kMaxRequestSize, ask.nodes.size()));
      add_bulk_call({.nodeset = ask.nodeset, .job = ask.job, .nodes = {begin, end}}, route, run);
    }
  }

  void add_bulk_call(const Ask& ask, const Route& route, const Run& run) {
    const NodesetConfig& nodeset = config_.nodesets[ask.nodeset];
    GroupPlan group;
    group.spec.kind = GroupKind::Loose;
    group.nodeset = nodeset.name;
    group.exists = true;
    PlannedRequest request;
    request.job = ask.id();
    request.way = {.attempt = options_.attempt, .step = route.step, .failures = options_.failures};
    request.key.attempt = options_.attempt;
    request.spec.nodes = ask.nodes;
    request.spec.run_duration = run.duration;
    note_way(request, nodeset, route, run);
    std::string description = ownership_mark(cluster_, nodeset.name);
    if (ask.id() != 0) description += fmt::format(" job={}", ask.id());
    request.bulk = {.description = std::move(description),
                    .instance_template = route.instance_template,
                    .zones = route.zones,
                    .nodes = ask.nodes,
                    // A job needs all of its nodes; others are of use one by one.
                    .min_count = ask.job == nullptr ? 1 : ask.nodes.size(),
                    .run_duration = run.duration};
    note_names(request, holdings_[ask.nodeset], {});
    group.requests.push_back(std::move(request));
    loose_.push_back(std::move(group));
  }

  void add_to_groups(const Ask& ask, const Route& route, const Run& run) {
    const NodesetConfig& nodeset = config_.nodesets[ask.nodeset];
    const bool own_group = nodeset.mig_scope == MigScope::Job && ask.id() != 0;
    const std::size_t capacity = group_capacity(nodeset);
    const auto positions = own_group ? positions_of(ask) : decltype(positions_of(ask)){};
    std::map<MigName, std::vector<NodeName>> by_group;
    std::map<std::size_t, MigName> names;  // the same for all nodes of one group
    for (const NodeName& node : ask.nodes) {
      const std::size_t number =
          (own_group ? positions.at(node) : config_.find(node)->index) / capacity;
      const auto name_of = [&](const std::string& variant) {
        return own_group ? job_group_name(cluster_, nodeset.name, ask.id(), number, variant)
                         : nodeset_group_name(cluster_, nodeset.name, number, variant);
      };
      if (options_.only_missing && is_out(ask, route, node, name_of)) continue;
      const auto [name, is_new] = names.try_emplace(number);
      if (is_new) name->second = free_name(ask, route, name_of);
      by_group[name->second].push_back(node);
    }
    for (auto& [name, members] : by_group) {
      Ask part{.nodeset = ask.nodeset, .job = ask.job, .nodes = std::move(members)};
      add_requests(name, std::move(part), route, run);
    }
  }

  /// The route's group; another where that is of the other kind, or has other zones or another
  /// template (the config was changed while it had VMs), or where it holds what is to be renewed.
  template <class NameOf>
  MigName free_name(const Ask& ask, const Route& route, const NameOf& name_of) const {
    std::string variant = fitting_variant(ask, route, name_of);
    const GroupView* const seen = find_group(ask.nodeset, name_of(variant));
    if (options_.is_second && seen != nullptr && holds_any(*seen, ask.nodes)) {
      variant = with_more(variant, "r");
      if (!is_usable(ask, route, name_of(variant)))
        variant = with_more(variant, other_variant(route));
    }
    return name_of(variant);
  }

  template <class NameOf>
  std::string fitting_variant(const Ask& ask, const Route& route, const NameOf& name_of) const {
    std::string variant = route.variant;
    const GroupView* const seen = find_group(ask.nodeset, name_of(variant));
    if (seen != nullptr && seen->group && seen->group->kind != kind_of(route.mode))
      variant = with_more(variant, route.mode == Mode::Queued ? "q" : "i");
    if (!is_usable(ask, route, name_of(variant)))
      variant = with_more(variant, other_variant(route));
    return variant;
  }

  /// There is no such group, it is as the route would make it, or it is not ours to judge.
  [[nodiscard]] bool is_usable(const Ask& ask, const Route& route, const MigName& name) const {
    const GroupView* const seen = find_group(ask.nodeset, name);
    return seen == nullptr || !seen->group ||
           !is_owned(seen->group->description, cluster_, config_.nodesets[ask.nodeset].name) ||
           is_made_for(*seen->group, route);
  }

  static std::string with_more(const std::string& variant, std::string_view more) {
    return variant.empty() ? std::string(more) : fmt::format("{}-{}", variant, more);
  }

  /// An active request of this route names the node, as it was made first or renewed.
  template <class NameOf>
  bool is_out(const Ask& ask,
              const Route& route,
              const NodeName& node,
              const NameOf& name_of) const {
    const auto holds = [&](const std::string& variant) {
      const GroupView* const seen = find_group(ask.nodeset, name_of(variant));
      return seen != nullptr && holds_any(*seen, {node});
    };
    const std::string now = fitting_variant(ask, route, name_of);
    return holds(route.variant) || holds(with_more(route.variant, "r")) || holds(now) ||
           holds(with_more(now, "r"));
  }

  static bool holds_any(const GroupView& group, const std::vector<NodeName>& nodes) {
    const std::unordered_set<NodeName> names(nodes.begin(), nodes.end());
    return std::any_of(
        group.requests.begin(), group.requests.end(), [&](const ResizeRequest& request) {
          return request.is_active() &&
                 std::any_of(request.nodes.begin(), request.nodes.end(), [&](const NodeName& node) {
                   return names.contains(node);
                 });
        });
  }

  [[nodiscard]] const GroupView* find_group(std::size_t nodeset, const MigName& name) const {
    const NodesetView& view = fleet_.at(nodeset);
    const auto seen = view.groups.find(name);
    return seen == view.groups.end() ? nullptr : &seen->second;
  }

  void add_requests(const MigName& name, Ask ask, const Route& route, const Run& run) {
    const NodesetConfig& nodeset = config_.nodesets[ask.nodeset];
    const GroupView* group_view = find_group(ask.nodeset, name);
    const bool exists = group_view != nullptr && group_view->group.has_value();
    if (exists && !is_owned(group_view->group->description, cluster_, nodeset.name)) {
      return refuse(std::move(ask),
                    {ErrorKind::Invalid,
                     fmt::format("group {} exists but is not ours (its description is not '{}'): "
                                 "rename the nodeset or "
                                 "delete the group",
                                 name,
                                 ownership_mark(cluster_, nodeset.name)),
                     "FOREIGN_GROUP"});
    }
    GroupPlan& group = group_plan(ask, route, name, exists);
    for (std::size_t at = 0; at < ask.nodes.size(); at += kMaxRequestSize) {
      const auto begin = ask.nodes.begin() + static_cast<std::ptrdiff_t>(at);
      const auto end = ask.nodes.begin() + static_cast<std::ptrdiff_t>(
                                               std::min(at + kMaxRequestSize, ask.nodes.size()));
      PlannedRequest request = planned(ask, {begin, end}, name, group_view, route);
      request.spec.run_duration = run.duration;
      note_way(request, nodeset, route, run);
      note_names(request, holdings_[ask.nodeset], name);
      group.requests.push_back(std::move(request));
    }
  }

  PlannedRequest planned(const Ask& ask,
                         std::vector<NodeName> nodes,
                         const MigName& name,
                         const GroupView* group_view,
                         const Route& route) {
    PlannedRequest request;
    request.job = ask.id();
    request.way = {.attempt = options_.attempt,
                   .step = route.step,
                   .renewed = options_.renewed,
                   .failures = options_.failures,
                   .is_race = route.is_race,
                   .shorter = options_.shorter};
    request.key = {.cluster = cluster_,
                   .nodeset = config_.nodesets[ask.nodeset].name,
                   .job = ask.id(),
                   .restart_count = ask.job == nullptr ? 0 : ask.job->restart_count,
                   .attempt = options_.attempt,
                   .nodes = std::move(nodes)};
    request.spec.group = name;
    request.spec.nodes = request.key.nodes;
    if (route.mode != Mode::Queued) return request;
    request.key = free_key(name, group_view, std::move(request.key));
    request.way.attempt = request.key.attempt;
    request.spec.name = request_name(request.key);
    request.spec.description = request_description(ask.id(), request.key.nodes, request.way);
    return request;
  }

  /// What there is to tell of it.
  static void note_way(PlannedRequest& request,
                       const NodesetConfig& nodeset,
                       const Route& route,
                       const Run& run) {
    request.nodeset = nodeset.name;
    request.mode = route.mode;
    request.zones = route.zones;
    request.how = run.how;
  }

  /// What must happen to the request's names before they can be asked for.
  static void note_names(PlannedRequest& request, const Holdings& holdings, const MigName& group) {
    for (const NodeName& node : request.spec.nodes) {
      const auto entries = holdings.entries.find(node);
      if (entries == holdings.entries.end()) continue;
      for (const auto& [instance, holder] : entries->second) {
        // What waits in another group is no obstacle: names are unique among VMs and within a
        // group.
        if (*holder != group && instance->is_queued()) continue;
        // An entry without a VM is, in whatever group: once a VM of that name is there again,
        // deleting it might mean that one.
        if (instance->is_dead()) request.dead[*holder].push_back(*instance);
        request.awaited[*holder].push_back(node);
      }
    }
  }

  /// The names in a group are gathered once: a group may have as many requests as nodes, and each
  /// of them may be asked for again.
  RequestKey free_key(const MigName& group, const GroupView* view, RequestKey key) {
    if (view == nullptr) return key;
    const auto [found, is_new] = taken_.try_emplace(group);
    if (is_new) {
      for (const ResizeRequest& request : view->requests) found->second.insert(request.name);
    }
    const auto& names = found->second;
    raise_attempt(key, [&](const RequestName& name) { return names.contains(name); });
    return key;
  }

  GroupPlan& group_plan(const Ask& ask, const Route& route, const MigName& name, bool exists) {
    const auto [found, is_new] = groups_.try_emplace(name);
    GroupPlan& group = found->second;
    if (!is_new) return group;
    const NodesetConfig& nodeset = config_.nodesets[ask.nodeset];
    std::string description = ownership_mark(cluster_, nodeset.name);
    if (route.mode == Mode::Individual) description += kIndividualMark;
    if (route.step > 0) description += fmt::format(" step={}", route.step);
    if (nodeset.mig_scope == MigScope::Job && ask.id() != 0)
      description += fmt::format(" job={}", ask.id());
    group.spec = {.name = name,
                  .description = std::move(description),
                  .instance_template = route.instance_template,
                  .zones = route.zones,
                  .kind = kind_of(route.mode)};
    group.nodeset = nodeset.name;
    group.exists = exists;
    if (nodeset.placement.is_wanted() && route.mode == Mode::Queued) {
      // A policy for each group, of the same name: what belongs together goes together.
      group.spec.policy = name.text;
      group.policy = {.name = name.text,
                      .description = group.spec.description,
                      .max_distance = nodeset.placement.max_distance,
                      .accelerator_topology = nodeset.placement.accelerator_topology};
    }
    return group;
  }

  /// `freed`: their requests are cancelled.
  std::vector<NodeName> without_backed(const Holdings& holdings,
                                       std::vector<NodeName> nodes,
                                       const std::unordered_set<NodeName>& freed) {
    std::vector<NodeName> missing;
    for (NodeName& node : nodes) {
      const bool is_requested =
          !options_.is_second && holdings.requested.contains(node) && !freed.contains(node);
      (is_requested || has_vm(holdings, node) ? plan_.left_alone : missing)
          .push_back(std::move(node));
    }
    return missing;
  }

  const Config& config_;
  const std::string& cluster_;
  const FleetView& fleet_;
  PlanOptions options_;
  const std::set<std::pair<NodeName, MigName>>& shut_;
  std::map<std::size_t, Holdings> holdings_{};
  std::map<MigName, GroupPlan> groups_{};
  std::vector<GroupPlan> loose_{};
  std::map<MigName, std::unordered_set<RequestName>> taken_{};
  std::unique_ptr<SeenFacts> facts_{};  ///< none: the jobs are not known, and nothing is judged
  std::set<const ResizeRequest*> cancelled_{};
  ResumePlan plan_{};
};

}  // namespace

void next_free_attempt(RequestKey& key, const std::vector<ResizeRequest>& taken) {
  raise_attempt(key, [&](const RequestName& name) {
    return std::any_of(taken.begin(), taken.end(), [&](const ResizeRequest& request) {
      return request.name == name;
    });
  });
}

std::vector<NodeName> nodes_without_vm(const Config& config,
                                       const std::string& cluster,
                                       const FleetView& fleet,
                                       const std::vector<NodeName>& nodes) {
  std::map<std::size_t, Holdings> holdings;
  for (const auto& [index, view] : fleet)
    holdings[index] = holdings_of(view, cluster, config.nodesets[index].name);
  std::vector<NodeName> without;
  for (const NodeName& node : nodes) {
    if (!has_vm(holdings[config.find(node)->nodeset], node)) without.push_back(node);
  }
  return without;
}

std::vector<JobId> jobs_asked_for(const FleetView& fleet, const std::vector<NodeName>& nodes) {
  const std::unordered_set<NodeName> names(nodes.begin(), nodes.end());
  std::set<JobId> jobs;
  for (const auto& [index, view] : fleet) {
    for (const auto& [name, group] : view.groups) {
      for (const ResizeRequest& request : group.requests) {
        const bool is_one = request.is_active() &&
                            std::any_of(request.nodes.begin(),
                                        request.nodes.end(),
                                        [&](const NodeName& node) { return names.contains(node); });
        if (is_one && request_job(request) != 0) jobs.insert(request_job(request));
      }
    }
  }
  return {jobs.begin(), jobs.end()};
}

ResumePlan plan_resume(const Config& config,
                       const std::string& cluster,
                       const Demand& demand,
                       const FleetView& fleet,
                       const PlanOptions& options) {
  Planner planner{config, cluster, fleet, options, demand};
  for (const Demand::JobNodes& wanted : demand.jobs) planner.add_job(wanted);
  planner.add_jobless(demand.jobless);
  return planner.finish();
}

}  // namespace flex

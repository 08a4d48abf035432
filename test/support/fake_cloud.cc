// SPDX-License-Identifier: GPL-2.0-or-later
#include "test/support/fake_cloud.h"

#include "lib/gce/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <span>
#include <utility>

namespace flex {
namespace {

Error not_found(std::string_view what, std::string_view name) {
  return {ErrorKind::NotFound, fmt::format("{} '{}' was not found", what, name), "notFound"};
}

Error already_exists(std::string_view what, std::string_view name) {
  return {
      ErrorKind::AlreadyExists, fmt::format("{} '{}' already exists", what, name), "alreadyExists"};
}

Error wrong_moment(std::string what) {
  return {ErrorKind::Precondition, std::move(what), "CONDITION_NOT_MET"};
}

constexpr std::string_view kZone = "test-region1-a";

std::string url_of(const std::string& node) {
  return fmt::format("projects/test/zones/{}/instances/{}", kZone, node);
}

Error too_many() {
  return {ErrorKind::Invalid, "too many instances at once", "TOO_MANY"};
}

bool is_among(const NodeName& name, std::span<const Instance> instances) {
  return std::any_of(
      instances.begin(), instances.end(), [&](const auto& each) { return each.name == name; });
}

void start(Instance& instance, std::optional<TimePoint> ends) {
  instance.url = url_of(instance.name.text);
  instance.status = InstanceStatus::Running;
  instance.action = InstanceAction::None;
  instance.terminates = ends;
}

/// Part of a request that is still active.
bool is_requested(const FakeCloud::State& state, const Instance& entry) {
  return std::any_of(state.requests.begin(), state.requests.end(), [&](const auto& request) {
    return request.is_active() &&
           std::find(request.nodes.begin(), request.nodes.end(), entry.name) != request.nodes.end();
  });
}

ActionCounts count_actions(const std::vector<Instance>& instances) {
  ActionCounts counts;
  for (const Instance& instance : instances) {
    switch (instance.action) {
      case InstanceAction::None:
        ++counts.none;
        break;
      case InstanceAction::Creating:
        ++counts.creating;
        break;
      case InstanceAction::Deleting:
        ++counts.deleting;
        break;
      case InstanceAction::Other:
        ++counts.other;
        break;
    }
  }
  return counts;
}

std::vector<std::string> texts(std::span<const NodeName> nodes) {
  std::vector<std::string> out;
  for (const NodeName& node : nodes) out.push_back(node.text);
  return out;
}

auto find_named(std::vector<ResizeRequest>& requests, const RequestName& name) {
  return std::find_if(
      requests.begin(), requests.end(), [&](const auto& each) { return each.name == name; });
}

/// Google may say PENDING or nothing of an entry that waits: a-1 has the one, a-2 the other.
Instance waiting_entry(const NodeName& node) {
  const bool is_odd = !node.empty() && node.text.back() % 2 == 1;
  return {.name = node,
          .status = is_odd ? InstanceStatus::Pending : InstanceStatus::None,
          .action = InstanceAction::Creating};
}

/// The entries a request stands for, gone with it.
void drop_entries(FakeCloud::State& state, const ResizeRequest& request) {
  std::erase_if(state.instances, [&](const Instance& instance) {
    return instance.is_queued() &&
           std::find(request.nodes.begin(), request.nodes.end(), instance.name) !=
               request.nodes.end();
  });
}

}  // namespace

template <class T>
void FakeCloud::answer(CloudCall call, Then<T> then, const std::function<Result<T>()>& act) {
  auto& faults = faults_[call.method];
  calls.push_back(std::move(call));
  std::optional<Fault> fault;
  if (!faults.empty()) {
    fault = std::move(faults.front());
    faults.pop_front();
  }
  std::optional<Result<T>> result;
  if (!fault || fault->acts) result = act();
  if (fault) result = Result<T>(std::move(fault->error));
  answers_.push_back([then = std::move(then), result = *std::move(result)] { then(result); });
}

FakeCloud::State& FakeCloud::add_group(const std::string& name, const std::string& description) {
  State& state = groups[name];
  state.group = {.name = {name}, .description = description, .created = now};
  return state;
}

ResizeRequest& FakeCloud::add_request(const std::string& group,
                                      const std::string& name,
                                      const std::vector<std::string>& nodes,
                                      RequestState state) {
  State& home = groups.at(group);
  ResizeRequest request{.name = {name}, .group = {group}, .state = state, .created = now};
  for (const std::string& node : nodes) {
    request.nodes.push_back({node});
    if (request.is_active()) home.instances.push_back(waiting_entry({node}));
  }
  home.requests.push_back(std::move(request));
  return home.requests.back();
}

Instance& FakeCloud::add_instance(const std::string& group, const std::string& node) {
  State& home = groups.at(group);
  home.instances.push_back(
      {.name = {node}, .url = url_of(node), .status = InstanceStatus::Running});
  return home.instances.back();
}

void FakeCloud::serve(const std::string& group, const std::string& request) {
  State& home = groups.at(group);
  const auto found = find_named(home.requests, {request});
  found->state = RequestState::Succeeded;
  for (Instance& instance : home.instances) {
    if (std::find(found->nodes.begin(), found->nodes.end(), instance.name) == found->nodes.end())
      continue;
    start(instance, now + found->run_duration);
  }
}

void FakeCloud::serve_instances(const std::string& group,
                                const std::vector<std::string>& nodes,
                                std::optional<TimePoint> ends) {
  for (Instance& instance : groups.at(group).instances)
    if (std::find(nodes.begin(), nodes.end(), instance.name.text) != nodes.end())
      start(instance, ends);
}

Instance& FakeCloud::add_loose(const std::string& node, const std::string& description) {
  loose.push_back({.name = {node}, .description = description});
  start(loose.back(), std::nullopt);
  return loose.back();
}

Policy& FakeCloud::add_policy(const std::string& name, const std::string& description) {
  return policies[name] = {.name = name, .description = description, .created = now};
}

void FakeCloud::make_loose(const std::string& operation, const BulkSpec& spec) {
  auto& error = operations_[operation];
  if (error) return;
  std::vector<NodeName> free;
  for (const NodeName& node : spec.nodes)
    if (!is_among(node, loose)) free.push_back(node);
  const bool has_clash = free.size() < spec.nodes.size();
  if (bulk_capacity && free.size() > *bulk_capacity) free.resize(*bulk_capacity);
  if (free.size() < std::max<std::size_t>(spec.min_count, 1)) {
    error = {.code = has_clash ? "RESOURCE_ALREADY_EXISTS" : "ZONE_RESOURCE_POOL_EXHAUSTED",
             .message = fmt::format("test-region1-a: {} of {} created", 0, spec.nodes.size())};
    return;
  }
  for (const NodeName& node : free)
    add_loose(node.text, spec.description).terminates = now + spec.run_duration;
  if (bulk_capacity) *bulk_capacity -= free.size();
}

void FakeCloud::finish_bulk() {
  for (const auto& [operation, spec] : std::exchange(held_, {})) make_loose(operation, spec);
}

void FakeCloud::next_error(std::string_view method, Error error) {
  faults_[std::string(method)].push_back({false, std::move(error)});
}

void FakeCloud::lose_reply(std::string_view method) {
  faults_[std::string(method)].push_back(
      {true, {ErrorKind::Retry, "the connection was lost", "HTTP_FAILED"}});
}

void FakeCloud::next_operation_error(std::string_view method, ProviderError error) {
  operation_faults_[std::string(method)].push_back(std::move(error));
}

std::size_t FakeCloud::count(std::string_view method) const {
  return static_cast<std::size_t>(std::count_if(
      calls.begin(), calls.end(), [&](const auto& call) { return call.method == method; }));
}

const ResizeRequest* FakeCloud::find_request(const std::string& group,
                                             const std::string& name) const {
  const auto home = groups.find(group);
  if (home == groups.end()) return nullptr;
  for (const auto& request : home->second.requests)
    if (request.name.text == name) return &request;
  return nullptr;
}

const Instance* FakeCloud::find_instance(const std::string& group, const std::string& node) const {
  const auto home = groups.find(group);
  if (home == groups.end()) return nullptr;
  for (const auto& instance : home->second.instances)
    if (instance.name.text == node) return &instance;
  return nullptr;
}

const Instance* FakeCloud::find_loose(const std::string& node) const {
  for (const auto& instance : loose)
    if (instance.name.text == node) return &instance;
  return nullptr;
}

Result<FakeCloud::State*> FakeCloud::find(const MigName& group) {
  const auto found = groups.find(group.text);
  if (found == groups.end()) return not_found("group", group.text);
  found->second.group.target_size = static_cast<std::int64_t>(found->second.instances.size());
  return &found->second;
}

Operation FakeCloud::start_operation(std::string_view method) {
  Operation operation{.name = fmt::format("operation-{}", operations_.size() + 1)};
  auto& faults = operation_faults_[std::string(method)];
  auto& error = operations_[operation.name];
  if (!faults.empty()) {
    error = std::move(faults.front());
    faults.pop_front();
  }
  return operation;
}

void FakeCloud::fetch_groups(const std::string& prefix, Then<std::vector<Group>> then) {
  answer<std::vector<Group>>({"fetch_groups", prefix}, std::move(then), [&] {
    std::vector<Group> out;
    for (auto& [name, state] : groups) {
      if (!name.starts_with(prefix)) continue;
      state.group.target_size = static_cast<std::int64_t>(state.instances.size());
      state.group.actions = count_actions(state.instances);
      out.push_back(state.group);
    }
    return Result(std::move(out));
  });
}

void FakeCloud::fetch_group(const MigName& group, Then<Group> then) {
  answer<Group>({"fetch_group", group.text}, std::move(then), [&]() -> Result<Group> {
    const auto found = find(group);
    if (!found) return found.error();
    return (*found)->group;
  });
}

void FakeCloud::fetch_requests(const MigName& group, Then<std::vector<ResizeRequest>> then) {
  using Out = std::vector<ResizeRequest>;
  answer<Out>({"fetch_requests", group.text}, std::move(then), [&]() -> Result<Out> {
    const auto found = find(group);
    if (!found) return found.error();
    return (*found)->requests;
  });
}

void FakeCloud::fetch_instances(const MigName& group, Then<std::vector<Instance>> then) {
  using Out = std::vector<Instance>;
  answer<Out>({"fetch_instances", group.text}, std::move(then), [&]() -> Result<Out> {
    const auto found = find(group);
    if (!found) return found.error();
    return (*found)->instances;
  });
}

void FakeCloud::fetch_vms(const VmSelection& which, Then<std::vector<ZoneVm>> then) {
  CloudCall call{.method = "fetch_vms", .zones = {which.zone}};
  answer<std::vector<ZoneVm>>(std::move(call), std::move(then), [&] {
    const std::regex pattern(which.name_pattern.empty() ? ".*" : which.name_pattern);
    std::vector<ZoneVm> out;
    const auto add = [&](const Instance& vm, const std::string& group) {
      const bool is_there =
          vm.status != InstanceStatus::None && !vm.is_queued() &&
          (which.zone.empty() || vm.url.find("/zones/" + which.zone + "/") != std::string::npos);
      if (!is_there || !std::regex_match(vm.name.text, pattern)) return;
      out.push_back({.vm = vm, .group = {which.with_group ? group : ""}});
      out.back().vm.action = InstanceAction::None;
    };
    for (const auto& [name, state] : groups)
      for (const Instance& vm : state.instances) add(vm, name);
    for (const Instance& vm : loose) add(vm, "");
    return Result(std::move(out));
  });
}

void FakeCloud::fetch_loose_instances(const std::string& cluster,
                                      const std::vector<std::string>& /*zones*/,
                                      Then<std::vector<Instance>> then) {
  answer<std::vector<Instance>>({"fetch_loose_instances", cluster}, std::move(then), [&] {
    std::vector<Instance> out;
    for (const Instance& vm : loose)
      if (owned_nodeset(vm.description, cluster)) out.push_back(vm);
    return Result(std::move(out));
  });
}

void FakeCloud::fetch_bulk_operations(Then<std::vector<Operation>> then) {
  answer<std::vector<Operation>>({"fetch_bulk_operations"}, std::move(then), [&] {
    std::vector<Operation> out;
    for (const auto& [operation, spec] : held_) out.push_back({.name = operation});
    return Result(std::move(out));
  });
}

void FakeCloud::fetch_policies(const std::string& prefix, Then<std::vector<Policy>> then) {
  answer<std::vector<Policy>>({"fetch_policies", prefix}, std::move(then), [&] {
    std::vector<Policy> out;
    for (const auto& [name, policy] : policies)
      if (name.starts_with(prefix)) out.push_back(policy);
    return Result(std::move(out));
  });
}

void FakeCloud::fetch_serial_output(const Instance& instance, Then<std::string> then) {
  const std::string& node = instance.name.text;
  CloudCall call{.method = "fetch_serial_output", .nodes = {node}};
  answer<std::string>(std::move(call), std::move(then), [&]() -> Result<std::string> {
    if (instance.url.empty()) return Error{ErrorKind::Invalid, "no URL", "NO_ZONE"};
    const auto found = serial_outputs.find(node);
    if (found == serial_outputs.end()) return not_found("instance", node);
    return found->second;
  });
}

void FakeCloud::wait_operation(const Operation& operation, Then<Done> then) {
  answer<Done>({"wait_operation"}, std::move(then), [&]() -> Result<Done> {
    if (operation.is_done && operation.error) return to_error(*operation.error);
    if (operation.is_done) return Done{};
    if (held_.contains(operation.name))
      return Error{ErrorKind::Retry, "the run's time limit is used up", "DEADLINE"};
    const auto found = operations_.find(operation.name);
    if (found == operations_.end()) return not_found("operation", operation.name);
    if (found->second) return to_error(*found->second);
    return Done{};
  });
}

void FakeCloud::insert_group(const GroupSpec& spec, Then<Operation> then) {
  answer<Operation>({"insert_group", spec.name.text}, std::move(then), [&]() -> Result<Operation> {
    if (groups.contains(spec.name.text)) return already_exists("group", spec.name.text);
    if (!spec.policy.empty() && !policies.contains(spec.policy))
      return Error{ErrorKind::Invalid, "the workload policy was not found", "invalid"};
    Operation operation = start_operation("insert_group");
    // An operation that fails leaves no group.
    if (operations_[operation.name]) return operation;
    State& state = add_group(spec.name.text, spec.description);
    state.spec = spec;
    state.group.instance_template = spec.instance_template;
    state.group.kind = spec.kind;
    state.group.policy = spec.policy;
    return operation;
  });
}

void FakeCloud::insert_request(const RequestSpec& spec, Then<Operation> then) {
  CloudCall call{.method = "insert_request",
                 .group = spec.group.text,
                 .request = spec.name.text,
                 .nodes = texts(spec.nodes),
                 .run_duration = spec.run_duration};
  answer<Operation>(std::move(call), std::move(then), [&]() -> Result<Operation> {
    const auto found = find(spec.group);
    if (!found) return found.error();
    State& home = **found;
    if (find_named(home.requests, spec.name) != home.requests.end())
      return already_exists("request", spec.name.text);
    for (const NodeName& node : spec.nodes)
      if (find_instance(spec.group.text, node.text) != nullptr)
        return already_exists("instance", node.text);
    Operation operation = start_operation("insert_request");
    if (operations_[operation.name]) return operation;
    auto& made = add_request(spec.group.text, spec.name.text, texts(spec.nodes));
    made.description = spec.description;
    made.run_duration = spec.run_duration;
    return operation;
  });
}

void FakeCloud::create_instances(const MigName& group,
                                 std::span<const NodeName> nodes,
                                 Then<Operation> then) {
  CloudCall call{.method = "create_instances", .group = group.text, .nodes = texts(nodes)};
  answer<Operation>(std::move(call), std::move(then), [&]() -> Result<Operation> {
    const auto found = find(group);
    if (!found) return found.error();
    State& home = **found;
    if (nodes.size() > kMaxRequestSize) return too_many();
    if (nodes.empty()) return Operation{.is_done = true};
    if (home.group.kind != GroupKind::Individual)
      return Error{ErrorKind::Invalid, "the group's VMs do not come one by one", "invalid"};
    for (const NodeName& node : nodes)
      if (is_among(node, home.instances))
        return Error{ErrorKind::Precondition,
                     fmt::format("Instance '{}' already exists in the group", node),
                     "invalid"};
    Operation operation = start_operation("create_instances");
    if (operations_[operation.name]) return operation;
    for (const NodeName& node : nodes) home.instances.push_back(waiting_entry(node));
    return operation;
  });
}

void FakeCloud::bulk_insert(const BulkSpec& spec, Then<Operation> then) {
  CloudCall call{.method = "bulk_insert",
                 .nodes = texts(spec.nodes),
                 .run_duration = spec.run_duration,
                 .zones = spec.zones,
                 .min_count = spec.min_count};
  answer<Operation>(std::move(call), std::move(then), [&]() -> Result<Operation> {
    if (spec.nodes.size() > kMaxRequestSize) return too_many();
    if (spec.nodes.empty()) return Operation{.is_done = true};
    bulk_specs.push_back(spec);
    Operation operation = start_operation("bulk_insert");
    if (is_bulk_held)
      held_[operation.name] = spec;
    else
      make_loose(operation.name, spec);
    return operation;
  });
}

void FakeCloud::insert_policy(const PolicySpec& spec, Then<Operation> then) {
  CloudCall call{.method = "insert_policy", .request = spec.name};
  answer<Operation>(std::move(call), std::move(then), [&]() -> Result<Operation> {
    if (policies.contains(spec.name)) return already_exists("policy", spec.name);
    Operation operation = start_operation("insert_policy");
    if (operations_[operation.name]) return operation;
    policy_specs.push_back(spec);
    add_policy(spec.name, spec.description);
    return operation;
  });
}

void FakeCloud::delete_policy(const std::string& policy, Then<Operation> then) {
  CloudCall call{.method = "delete_policy", .request = policy};
  answer<Operation>(std::move(call), std::move(then), [&]() -> Result<Operation> {
    const auto found = policies.find(policy);
    if (found == policies.end()) return not_found("policy", policy);
    for (const auto& [name, state] : groups)
      if (state.group.policy == policy)
        return wrong_moment(fmt::format("policy '{}' is used by group '{}'", policy, name));
    policies.erase(found);
    return start_operation("delete_policy");
  });
}

void FakeCloud::cancel_request(const MigName& group,
                               const RequestName& request,
                               Then<Operation> then) {
  answer<Operation>(
      {"cancel_request", group.text, request.text}, std::move(then), [&]() -> Result<Operation> {
        const auto found = find(group);
        if (!found) return found.error();
        State& home = **found;
        const auto it = find_named(home.requests, request);
        if (it == home.requests.end()) return not_found("request", request.text);
        if (it->state != RequestState::Accepted)
          return wrong_moment(fmt::format("request '{}' is not ACCEPTED", request));
        it->state = RequestState::Cancelled;
        drop_entries(home, *it);
        return start_operation("cancel_request");
      });
}

void FakeCloud::delete_instances(const MigName& group,
                                 std::span<const Instance> instances,
                                 Then<Operation> then) {
  CloudCall call{.method = "delete_instances", .group = group.text};
  for (const Instance& instance : instances) call.nodes.push_back(instance.name.text);
  answer<Operation>(std::move(call), std::move(then), [&]() -> Result<Operation> {
    if (instances.size() > kMaxRequestSize) return too_many();
    if (group.empty()) return delete_loose(instances);
    const auto found = find(group);
    if (!found) return found.error();
    State& home = **found;
    // One that is not there is skipped, as the real call does when asked; a queued one of a request
    // stays until that is cancelled.
    std::erase_if(home.instances, [&](const Instance& entry) {
      const bool stays = entry.is_queued() && is_requested(home, entry);
      return !stays && is_among(entry.name, instances);
    });
    return start_operation("delete_instances");
  });
}

Result<Operation> FakeCloud::delete_loose(std::span<const Instance> instances) {
  const bool has_no_url = std::any_of(
      instances.begin(), instances.end(), [](const auto& each) { return each.url.empty(); });
  const auto erased =
      std::erase_if(loose, [&](const Instance& vm) { return is_among(vm.name, instances); });
  if (has_no_url) return Error{ErrorKind::Invalid, "no URL", "NO_ZONE"};
  if (erased == 0) return Operation{.is_done = true};
  Operation operation = start_operation("delete_instances");
  operation.zone = kZone;
  return operation;
}

void FakeCloud::delete_request(const MigName& group,
                               const RequestName& request,
                               Then<Operation> then) {
  answer<Operation>(
      {"delete_request", group.text, request.text}, std::move(then), [&]() -> Result<Operation> {
        const auto found = find(group);
        if (!found) return found.error();
        State& home = **found;
        const auto it = find_named(home.requests, request);
        if (it == home.requests.end()) return not_found("request", request.text);
        if (it->is_active()) return wrong_moment(fmt::format("request '{}' is active", request));
        home.requests.erase(it);
        return start_operation("delete_request");
      });
}

void FakeCloud::delete_group(const MigName& group, Then<Operation> then) {
  answer<Operation>({"delete_group", group.text}, std::move(then), [&]() -> Result<Operation> {
    if (groups.erase(group.text) == 0) return not_found("group", group.text);
    return start_operation("delete_group");
  });
}

void FakeCloud::after(std::chrono::milliseconds delay, std::function<void()> what) {
  timers_.emplace(elapsed + delay, std::move(what));
}

void FakeCloud::run() {
  while (!answers_.empty() || !timers_.empty()) {
    if (!answers_.empty()) {
      const auto next = std::move(answers_.front());
      answers_.pop_front();
      next();
      continue;
    }
    auto node = timers_.extract(timers_.begin());
    elapsed = std::max(elapsed, node.key());
    node.mapped()();
  }
}

CloudStats FakeCloud::stats() const {
  return {.calls = calls.size()};
}

}  // namespace flex

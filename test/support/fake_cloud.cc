// SPDX-License-Identifier: GPL-2.0-or-later
#include "test/support/fake_cloud.h"

#include "lib/gce/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

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

std::string url_of(const std::string& node) {
  return "projects/test/zones/test-region1-a/instances/" + node;
}

std::vector<std::string> texts(const std::vector<NodeName>& nodes) {
  std::vector<std::string> out;
  for (const NodeName& node : nodes) out.push_back(node.text);
  return out;
}

auto find_named(std::vector<ResizeRequest>& requests, const RequestName& name) {
  return std::find_if(
      requests.begin(), requests.end(), [&](const auto& each) { return each.name == name; });
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
    if (request.is_active())
      home.instances.push_back({.name = {node}, .action = InstanceAction::Creating});
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
    instance.url = url_of(instance.name.text);
    instance.status = InstanceStatus::Running;
    instance.action = InstanceAction::None;
    instance.terminates = now + found->run_duration;
  }
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
    const auto found = operations_.find(operation.name);
    if (found == operations_.end()) return not_found("operation", operation.name);
    if (found->second) return to_error(*found->second);
    return Done{};
  });
}

void FakeCloud::insert_group(const GroupSpec& spec, Then<Operation> then) {
  answer<Operation>({"insert_group", spec.name.text}, std::move(then), [&]() -> Result<Operation> {
    if (groups.contains(spec.name.text)) return already_exists("group", spec.name.text);
    Operation operation = start_operation("insert_group");
    // An operation that fails leaves no group.
    if (operations_[operation.name]) return operation;
    State& state = add_group(spec.name.text, spec.description);
    state.spec = spec;
    state.group.instance_template = spec.instance_template;
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
    const auto found = find(group);
    if (!found) return found.error();
    if (instances.size() > kMaxRequestSize)
      return Error{ErrorKind::Invalid, "too many instances at once", "TOO_MANY"};
    // One that is not there is skipped, as the real call does when asked; a queued one stays until
    // its request is cancelled.
    std::erase_if((*found)->instances, [&](const Instance& entry) {
      return !entry.is_queued() &&
             std::any_of(instances.begin(), instances.end(), [&](const Instance& given) {
               return given.name == entry.name;
             });
    });
    return start_operation("delete_instances");
  });
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

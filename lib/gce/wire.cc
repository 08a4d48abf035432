// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/wire.h"

#include "lib/core/duration.h"
#include "lib/gce/json_view.h"
#include "lib/gce/urls.h"
#include "lib/gce/wire_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace flex {
namespace {

using nlohmann::json;

/// Characters of a group's baseInstanceName.
constexpr std::size_t kMaxBaseName = 58;

std::optional<TimePoint> read_time(const JsonView& view, std::string_view key) {
  const std::string text = view.text(key);
  if (text.empty()) return std::nullopt;
  const auto time = parse_time(text);
  return time ? std::optional(*time) : std::nullopt;
}

/// The year Google writes for "nobody knows".
bool is_indefinite(TimePoint time) {
  using namespace std::chrono_literals;
  return time >= std::chrono::sys_days{9999y / std::chrono::January / 1};
}

/// A message that does not say which quota it is about says so from now on.
void name_quota(ProviderError& error, const std::string& name) {
  if (name.empty() || error.message.find(name) != std::string::npos) return;
  error.message = fmt::format("Quota '{}' exceeded. {}", name, error.message);
}

/// Which of several errors says most: a quota's, for that is what somebody can mend; a bulkInsert's
/// own comes first in its list, and only sums up.
int rank_of(const ProviderError& error) {
  if (error.code == "QUOTA_EXCEEDED") return 2;
  return error.code == "VM_MIN_COUNT_NOT_REACHED" ? 0 : 1;
}

/// An `errors` array as one error: the first of the highest rank.
std::optional<ProviderError> read_errors(const JsonView& holder) {
  std::optional<ProviderError> chosen;
  std::optional<TimePoint> availability;
  holder.objects("errors", [&](const JsonView& item) {
    ProviderError error{.code = item.text("code"), .message = item.text("message")};
    item.objects("errorDetails", [&](const JsonView& detail) {
      const JsonView info = detail.object("errorInfo");
      const auto time = read_time(info.object("metadatas"), "estimatedAvailabilityTime");
      if (time && !is_indefinite(*time)) availability = time;
      name_quota(error, detail.object("quotaInfo").text("limitName"));
    });
    if (!chosen || rank_of(error) > rank_of(*chosen)) chosen = std::move(error);
  });
  if (chosen) chosen->estimated_availability = availability;
  return chosen;
}

ActionCounts read_actions(const JsonView& view) {
  ActionCounts counts{.none = view.number("none"),
                      .creating = view.number("creating") + view.number("creatingWithoutRetries"),
                      .deleting = view.number("deleting") + view.number("abandoning")};
  for (const std::string_view key : {"recreating",
                                     "refreshing",
                                     "restarting",
                                     "resuming",
                                     "starting",
                                     "stopping",
                                     "suspending",
                                     "verifying"})
    counts.other += view.number(key);
  return counts;
}

Group read_group(const JsonView& view) {
  Group group{.name = {view.text("name")},
              .id = view.text("id"),
              .description = view.text("description"),
              .instance_template = view.text("instanceTemplate"),
              .target_size = view.number("targetSize"),
              .is_stable = view.object("status").flag("isStable", true),
              .actions = read_actions(view.object("currentActions")),
              .created = read_time(view, "creationTimestamp").value_or(TimePoint{})};
  // Not by targetSizePolicy: INDIVIDUAL is Google's default, which an answer may fill in.
  if (group.description.find(kIndividualMark) != std::string::npos)
    group.kind = GroupKind::Individual;
  group.step = described_number(group.description, "step");
  group.policy = last_part(view.object("resourcePolicies").text("workloadPolicy"));
  view.objects("versions", [&](const JsonView& version) {
    if (group.instance_template.empty()) group.instance_template = version.text("instanceTemplate");
  });
  view.object("distributionPolicy").objects("zones", [&](const JsonView& zone) {
    group.zones.emplace_back(last_part(zone.text("zone")));
  });
  return group;
}

ResizeRequest read_request(const JsonView& view, const MigName& group) {
  ResizeRequest request{
      .name = {view.text("name")},
      .id = view.text("id"),
      .group = group,
      .state = parse_request_state(view.text("state")),
      .run_duration = Seconds{view.object("requestedRunDuration").number("seconds")},
      .description = view.text("description"),
      .created = read_time(view, "creationTimestamp").value_or(TimePoint{})};
  request.nodes.reserve(view.size("instances"));
  view.objects("instances",
               [&](const JsonView& instance) { request.nodes.push_back({instance.text("name")}); });
  const JsonView status = view.object("status");
  request.error = read_errors(status.object("error"));
  const JsonView last_attempt = status.object("lastAttempt");
  request.last_attempt = read_errors(last_attempt.object("error"));
  return request;
}

/// PENDING means that the VM has yet to be made, whether or not an action says so. A VM without a
/// group has no action.
void note_creation(Instance& instance) {
  const bool is_pending = instance.status == InstanceStatus::Pending;
  if (is_pending && instance.action == InstanceAction::None)
    instance.action = InstanceAction::Creating;
}

Instance read_instance(const JsonView& view) {
  Instance instance{.name = {view.text("name")},
                    .url = view.text("instance"),
                    .id = view.text("id"),
                    .status = parse_instance_status(view.text("instanceStatus")),
                    .action = parse_instance_action(view.text("currentAction")),
                    .terminates = read_time(view.object("scheduling"), "terminationTimestamp")};
  if (instance.name.empty()) instance.name.text = last_part(instance.url);
  const JsonView last_attempt = view.object("lastAttempt");
  instance.last_error = read_errors(last_attempt.object("errors"));
  note_creation(instance);
  return instance;
}

/// A VM as the instances' own lists show it.
Instance read_loose_instance(const JsonView& view) {
  const JsonView status = view.object("resourceStatus");
  Instance instance{.name = {view.text("name")},
                    .url = view.text("selfLink"),
                    .id = view.text("id"),
                    .status = parse_instance_status(view.text("status")),
                    .terminates = read_time(status.object("scheduling"), "terminationTimestamp"),
                    .description = view.text("description")};
  // A VM always has a status: one that is not said is not "no VM".
  if (instance.status == InstanceStatus::None) instance.status = InstanceStatus::Unknown;
  note_creation(instance);
  return instance;
}

/// Google writes there which group has made a VM: ".../instanceGroupManagers/NAME".
MigName read_creator(const JsonView& metadata) {
  static constexpr std::string_view kGroups = "/instanceGroupManagers/";
  MigName group;
  metadata.objects("items", [&](const JsonView& item) {
    if (item.text("key") != "created-by") return;
    const std::string path = item.text("value");
    if (path.find(kGroups) != std::string::npos) group = {std::string(last_part(path))};
  });
  return group;
}

/// "; us-central1-a: 1 of 4 created, 3 failed" for every zone that a bulkInsert tried.
std::string read_locations(const JsonView& operation) {
  std::string text;
  const JsonView metadata = operation.object("instancesBulkInsertOperationMetadata");
  metadata.members("perLocationStatus", [&](std::string_view place, const JsonView& status) {
    text += fmt::format("; {}: {} of {} created, {} failed",
                        last_part(place),
                        status.number("createdVmCount"),
                        status.number("targetVmCount"),
                        status.number("failedToCreateVmCount"));
    const auto deleted = status.number("deletedVmCount");
    if (deleted > 0) text += fmt::format(", {} deleted again", deleted);
  });
  return text;
}

Operation read_operation(const JsonView& view) {
  Operation operation{.name = view.text("name"),
                      .zone = std::string(last_part(view.text("zone"))),
                      .is_done = view.text("status") == "DONE",
                      .error = read_errors(view.object("error"))};
  const auto status = view.number("httpErrorStatusCode");
  if (!operation.error && status >= 400)
    operation.error = ProviderError{.code = fmt::format("HTTP_{}", status),
                                    .message = view.text("httpErrorMessage")};
  if (operation.error) operation.error->message += read_locations(view);
  return operation;
}

/// A list that is not the whole list would make us see VMs as gone.
void check_complete(const JsonView& page, std::optional<Error>& incomplete) {
  const std::string code = page.object("warning").text("code");
  const bool is_partial =
      code == "UNREACHABLE" || code == "PARTIAL_SUCCESS" || code == "LIST_OVERHEAD_QUOTA_EXCEED";
  if (!is_partial && page.size("unreachables") == 0) return;
  incomplete = Error{
      ErrorKind::Retry,
      fmt::format("the list is incomplete ({})", is_partial ? code : std::string("unreachables")),
      "INCOMPLETE_LIST"};
}

template <class T, class ReadItem>
Result<Page<T>> parse_page(std::string_view text, std::string_view items, const ReadItem& read) {
  std::optional<Error> incomplete;
  auto page = parse_document<Page<T>>(text, [&](const JsonView& view) {
    Page<T> out{.next = view.text("nextPageToken")};
    check_complete(view, incomplete);
    out.items.reserve(view.size(items));
    view.objects(items, [&](const JsonView& item) { out.items.push_back(read(item)); });
    return out;
  });
  if (page && incomplete) return *std::move(incomplete);
  return page;
}

template <class Enum>
struct Word {
  std::string_view text;
  Enum value;
};

template <class Enum, std::size_t N>
Enum look_up(const Word<Enum> (&words)[N], std::string_view text, Enum otherwise) {
  const auto* found = std::find_if(
      std::begin(words), std::end(words), [&](const auto& word) { return word.text == text; });
  return found == std::end(words) ? otherwise : found->value;
}

/// [{"name": …}, …]
json named(std::span<const NodeName> nodes) {
  json list = json::array();
  for (const NodeName& node : nodes) list.push_back({{"name", node.text}});
  return list;
}

std::string dump(const json& value) {
  // A node's name or a description that is not UTF-8 must not throw.
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string group_page_fields() {
  return fmt::format("items({}),nextPageToken,warning/code", kGroupFields);
}

std::string request_page_fields() {
  return "items(name,id,state,description,creationTimestamp,requestedRunDuration/seconds,"
         "instances/name,"
         "status(error/errors(code,message,errorDetails(errorInfo/metadatas,quotaInfo/limitName)),"
         "lastAttempt/error/errors(code,message,"
         "errorDetails(errorInfo/metadatas,quotaInfo/limitName)))),"
         "nextPageToken,warning/code,unreachables";
}

std::string instance_page_fields() {
  return "managedInstances(name,instance,id,instanceStatus,currentAction,"
         "scheduling/terminationTimestamp,lastAttempt/errors/errors(code,message,"
         "errorDetails(errorInfo/metadatas,quotaInfo/limitName))),nextPageToken";
}

std::string loose_instance_page_fields() {
  return "items(name,selfLink,id,status,description,"
         "resourceStatus/scheduling/terminationTimestamp),nextPageToken,warning/code";
}

std::string zone_vm_page_fields(bool with_group) {
  return fmt::format(
      "items(name,selfLink,id,status,resourceStatus/scheduling/terminationTimestamp{}),"
      "nextPageToken,warning/code",
      with_group ? ",metadata/items(key,value)" : "");
}

std::string operation_page_fields() {
  return fmt::format("items({}),nextPageToken,warning/code", kOperationFields);
}

std::string policy_page_fields() {
  return "items(name,id,description,creationTimestamp,workloadPolicy/type),nextPageToken,warning/"
         "code";
}

Result<Group> parse_group(std::string_view text) {
  return parse_document<Group>(text, read_group);
}

Result<Page<Group>> parse_group_page(std::string_view text) {
  return parse_page<Group>(text, "items", read_group);
}

Result<Page<ResizeRequest>> parse_request_page(std::string_view text, const MigName& group) {
  return parse_page<ResizeRequest>(
      text, "items", [&](const JsonView& item) { return read_request(item, group); });
}

Result<Page<Instance>> parse_instance_page(std::string_view text) {
  return parse_page<Instance>(text, "managedInstances", read_instance);
}

Result<Operation> parse_operation(std::string_view text) {
  auto operation = parse_document<Operation>(text, read_operation);
  if (operation && operation->name.empty())
    return Error{ErrorKind::Internal, "$.name: an operation without a name", "BAD_REPLY"};
  return operation;
}

Result<Page<Operation>> parse_operation_page(std::string_view text) {
  return parse_page<Operation>(text, "items", read_operation);
}

Result<Page<Instance>> parse_loose_instance_page(std::string_view text) {
  return parse_page<Instance>(text, "items", read_loose_instance);
}

Result<Page<ZoneVm>> parse_zone_vm_page(std::string_view text) {
  return parse_page<ZoneVm>(text, "items", [](const JsonView& view) {
    return ZoneVm{.vm = read_loose_instance(view), .group = read_creator(view.object("metadata"))};
  });
}

Result<std::vector<std::string>> parse_region_zones(std::string_view text) {
  return parse_document<std::vector<std::string>>(text, [](const JsonView& view) {
    std::vector<std::string> zones;
    view.texts("zones", [&](const std::string& url) { zones.emplace_back(last_part(url)); });
    return zones;
  });
}

Result<Page<Policy>> parse_policy_page(std::string_view text) {
  auto page = parse_page<std::optional<Policy>>(text, "items", [](const JsonView& view) {
    const bool is_workload = view.object("workloadPolicy").is_there();
    Policy policy{.name = view.text("name"),
                  .id = view.text("id"),
                  .description = view.text("description"),
                  .created = read_time(view, "creationTimestamp").value_or(TimePoint{})};
    return is_workload ? std::optional(std::move(policy)) : std::nullopt;
  });
  if (!page) return std::move(page.error());
  Page<Policy> out{.next = std::move(page->next)};
  for (auto& policy : page->items)
    if (policy) out.items.push_back(*std::move(policy));
  return out;
}

Result<std::string> parse_serial_output(std::string_view text) {
  return parse_document<std::string>(text,
                                     [](const JsonView& view) { return view.text("contents"); });
}

Complaint parse_complaint(int http_status, std::string_view text) {
  Complaint complaint{.http_status = http_status};
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) return complaint;
  std::optional<Error> ignored;
  const JsonView view(document, ignored);
  // OAuth: {"error": "invalid_grant", "error_description": "…"}; Google: {"error": {…}}.
  const auto error = document.find("error");
  if (error == document.end()) return complaint;
  if (error->is_string()) {
    complaint.code = view.text("error");
    complaint.message = view.text("error_description");
    return complaint;
  }
  const JsonView body = view.object("error");
  complaint.message = body.text("message");
  body.objects("errors", [&](const JsonView& item) {
    if (complaint.code.empty()) complaint.code = item.text("reason");
  });
  body.objects("details", [&](const JsonView& item) {
    if (complaint.code.empty()) complaint.code = item.text("reason");
  });
  if (complaint.code.empty()) complaint.code = body.text("status");
  return complaint;
}

RequestState parse_request_state(std::string_view text) {
  static constexpr Word<RequestState> kWords[] = {
      {"CREATING", RequestState::Creating},
      {"ACCEPTED", RequestState::Accepted},
      {"PROVISIONING", RequestState::Provisioning},
      {"SUCCEEDED", RequestState::Succeeded},
      {"FAILED", RequestState::Failed},
      {"CANCELLED", RequestState::Cancelled},
      {"DELETING", RequestState::Deleting},
  };
  return look_up(kWords, text, RequestState::Unknown);
}

InstanceStatus parse_instance_status(std::string_view text) {
  static constexpr Word<InstanceStatus> kWords[] = {
      {"", InstanceStatus::None},
      {"PENDING", InstanceStatus::Pending},
      {"PROVISIONING", InstanceStatus::Provisioning},
      {"STAGING", InstanceStatus::Staging},
      {"RUNNING", InstanceStatus::Running},
      {"PENDING_STOP", InstanceStatus::PendingStop},
      {"STOPPING", InstanceStatus::Stopping},
      {"STOPPED", InstanceStatus::Stopped},
      {"SUSPENDING", InstanceStatus::Suspending},
      {"SUSPENDED", InstanceStatus::Suspended},
      {"REPAIRING", InstanceStatus::Repairing},
      {"TERMINATED", InstanceStatus::Terminated},
      {"DEPROVISIONING", InstanceStatus::Deprovisioning},
  };
  return look_up(kWords, text, InstanceStatus::Unknown);
}

InstanceAction parse_instance_action(std::string_view text) {
  static constexpr Word<InstanceAction> kWords[] = {
      {"", InstanceAction::None},
      {"NONE", InstanceAction::None},
      {"CREATING", InstanceAction::Creating},
      {"CREATING_WITHOUT_RETRIES", InstanceAction::Creating},
      {"RECREATING", InstanceAction::Creating},
      {"DELETING", InstanceAction::Deleting},
      {"ABANDONING", InstanceAction::Deleting},
  };
  return look_up(kWords, text, InstanceAction::Other);
}

std::string group_body(const GroupSpec& spec, const Home& home) {
  const bool is_individual = spec.kind == GroupKind::Individual;
  // VMs that come one by one may come from any zone, unless they are to be near each other.
  const bool is_spread = is_individual && spec.policy.empty();
  json distribution = {{"targetShape", is_spread ? "ANY" : "ANY_SINGLE_ZONE"}};
  for (const std::string& zone : spec.zones)
    distribution["zones"].push_back({{"zone", zone_url(home.project, zone)}});
  // No VM that was not asked for; no repair and no moving about behind Slurm's back.
  json body = {
      {"name", spec.name.text},
      {"description", spec.description},
      // Its own limit is shorter: a number may be put behind it.
      {"baseInstanceName", to_rfc1035(spec.name.text, kMaxBaseName)},
      {"targetSize", 0},
      {"versions",
       json::array({{{"instanceTemplate", template_url(home.project, spec.instance_template)}}})},
      {"distributionPolicy", std::move(distribution)},
      {"updatePolicy", {{"type", "OPPORTUNISTIC"}, {"instanceRedistributionType", "NONE"}}},
      {"instanceLifecyclePolicy", {{"defaultActionOnFailure", "DO_NOTHING"}}},
  };
  if (is_individual) body["targetSizePolicy"] = {{"mode", "INDIVIDUAL"}};
  if (!spec.policy.empty())
    body["resourcePolicies"] = {
        {"workloadPolicy", policy_url(home.project, home.region, spec.policy)}};
  return dump(body);
}

std::string request_body(const RequestSpec& spec) {
  return dump({
      {"name", spec.name.text},
      {"description", spec.description},
      {"instances", named(spec.nodes)},
      {"requestedRunDuration", {{"seconds", fmt::format("{}", spec.run_duration.count())}}},
  });
}

std::string create_instances_body(std::span<const NodeName> nodes) {
  return dump({{"instances", named(nodes)}});
}

std::string bulk_body(const BulkSpec& spec, const Home& home) {
  json each = json::object();
  for (const NodeName& node : spec.nodes) each[node.text] = json::object();
  json location = {{"targetShape", "ANY_SINGLE_ZONE"}};
  for (const std::string& zone : spec.zones) {
    // The preferences alone leave the region's other zones open; the list does not.
    const std::string place = fmt::format("zones/{}", last_part(zone));
    location["locations"][place] = {{"preference", "ALLOW"}};
    location["zones"].push_back({{"zone", place}});
  }
  // Merged into the template's: what is not said here stays as it is there.
  json scheduling = {
      {"maxRunDuration", {{"seconds", fmt::format("{}", spec.run_duration.count())}}},
      {"instanceTerminationAction", "DELETE"}};
  return dump({
      {"count", fmt::format("{}", spec.nodes.size())},
      {"minCount", fmt::format("{}", std::max<std::size_t>(spec.min_count, 1))},
      {"perInstanceProperties", std::move(each)},
      {"sourceInstanceTemplate", template_url(home.project, spec.instance_template)},
      {"instanceProperties",
       {{"description", spec.description}, {"scheduling", std::move(scheduling)}}},
      {"locationPolicy", std::move(location)},
  });
}

std::string policy_body(const PolicySpec& spec) {
  static constexpr std::string_view kDistances[] = {"SUBBLOCK", "BLOCK", "CLUSTER"};
  json workload = {{"type", "HIGH_THROUGHPUT"}};
  if (spec.max_distance >= 1 && spec.max_distance <= 3)
    workload["maxTopologyDistance"] = kDistances[spec.max_distance - 1];
  if (!spec.accelerator_topology.empty())
    workload["acceleratorTopology"] = spec.accelerator_topology;
  return dump({{"name", spec.name},
               {"description", spec.description},
               {"workloadPolicy", std::move(workload)}});
}

std::string delete_instances_body(std::span<const std::string> instances) {
  json list = json::array();
  for (const std::string& instance : instances) list.push_back(instance);
  // One VM that has just gone must not save the others.
  return dump({{"instances", std::move(list)}, {"skipInstancesOnValidationError", true}});
}

}  // namespace flex

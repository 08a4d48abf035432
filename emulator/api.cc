// SPDX-License-Identifier: GPL-2.0-or-later
// What all calls share: errors, lists, operations, and which handler serves which method.
#include "emulator/api.h"

#include "emulator/filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace flex::emulator {

namespace {

std::string status_name(int status) {
  switch (status) {
    case 400:
      return "INVALID_ARGUMENT";
    case 401:
      return "UNAUTHENTICATED";
    case 403:
      return "PERMISSION_DENIED";
    case 404:
      return "NOT_FOUND";
    case 409:
      return "ALREADY_EXISTS";
    case 412:
      return "FAILED_PRECONDITION";
    case 429:
      return "RESOURCE_EXHAUSTED";
    case 501:
      return "UNIMPLEMENTED";
    case 503:
      return "UNAVAILABLE";
    default:
      return "INTERNAL";
  }
}

using Handlers = std::unordered_map<std::string, Handler>;

void add_groups(Handlers& table) {
  for (const char* service : {"instanceGroupManagers.", "regionInstanceGroupManagers."}) {
    const std::string prefix = service;
    table[prefix + "insert"] = groups_insert;
    table[prefix + "get"] = groups_get;
    table[prefix + "list"] = groups_list;
    table[prefix + "delete"] = groups_delete;
    table[prefix + "patch"] = groups_patch;
    table[prefix + "resize"] = groups_resize;
    table[prefix + "createInstances"] = groups_create_instances;
    table[prefix + "deleteInstances"] = groups_delete_instances;
    table[prefix + "listManagedInstances"] = groups_list_managed;
    table[prefix + "listErrors"] = groups_list_errors;
    table[prefix + "listPerInstanceConfigs"] = groups_list_configs;
  }
  for (const char* service :
       {"instanceGroupManagerResizeRequests.", "regionInstanceGroupManagerResizeRequests."}) {
    const std::string prefix = service;
    table[prefix + "insert"] = requests_insert;
    table[prefix + "get"] = requests_get;
    table[prefix + "list"] = requests_list;
    table[prefix + "cancel"] = requests_cancel;
    table[prefix + "delete"] = requests_delete;
  }
  table["instanceGroupManagers.aggregatedList"] = groups_aggregated;
}

Handlers make_handlers() {
  Handlers table{
      {"instances.get", instances_get},
      {"instances.list", instances_list},
      {"instances.aggregatedList", instances_aggregated},
      {"instances.insert", instances_insert},
      {"instances.delete", instances_delete},
      {"instances.bulkInsert", instances_bulk_insert},
      {"regionInstances.bulkInsert", instances_bulk_insert},
      {"instances.getSerialPortOutput", instances_serial},
      {"globalOperations.aggregatedList", operations_aggregated},
      {"instanceTemplates.aggregatedList", templates_aggregated},
      {"resourcePolicies.insert", policies_insert},
      {"resourcePolicies.get", policies_get},
      {"resourcePolicies.list", policies_list},
      {"resourcePolicies.aggregatedList", policies_aggregated},
      {"resourcePolicies.delete", policies_delete},
      {"regions.get", regions_get},
      {"regions.list", regions_list},
      {"zones.get", zones_get},
      {"zones.list", zones_list},
      {"projects.get", projects_get},
      {"machineTypes.get", machine_types_get},
      {"machineTypes.list", machine_types_list},
      {"machineTypes.aggregatedList", machine_types_aggregated},
      {"instanceGroups.get", instance_groups_get},
      {"regionInstanceGroups.get", instance_groups_get},
      {"instanceGroups.list", instance_groups_list},
      {"regionInstanceGroups.list", instance_groups_list},
      {"instanceGroups.aggregatedList", instance_groups_aggregated},
      {"autoscalers.list", autoscalers_list},
      {"regionAutoscalers.list", autoscalers_list},
      {"autoscalers.aggregatedList", autoscalers_aggregated},
  };
  add_groups(table);
  for (const char* service : {"globalOperations.", "regionOperations.", "zoneOperations."}) {
    const std::string prefix = service;
    table[prefix + "get"] = operations_get;
    table[prefix + "wait"] = operations_get;  // the server waits before it asks
    table[prefix + "list"] = operations_list;
  }
  for (const char* service : {"instanceTemplates.", "regionInstanceTemplates."}) {
    const std::string prefix = service;
    table[prefix + "insert"] = templates_insert;
    table[prefix + "get"] = templates_get;
    table[prefix + "list"] = templates_list;
    table[prefix + "delete"] = templates_delete;
  }
  return table;
}

constexpr std::size_t kDefaultPage = 500;

struct Page {
  std::size_t from = 0;
  std::size_t size = kDefaultPage;
};

/// A page token is the number of the first item, hidden a little.
std::optional<Page> page_of(const Call& call) {
  Page page;
  const std::string size = call.query_value("maxResults");
  if (!size.empty()) {
    const auto number = parse_int(size);
    if (!number || *number < 0 || *number > 500) return std::nullopt;
    if (*number > 0) page.size = static_cast<std::size_t>(*number);
  }
  const std::string token = call.query_value("pageToken");
  if (!token.empty()) {
    const auto number = token.starts_with("p-") ? parse_int(token.substr(2)) : std::nullopt;
    if (!number || *number < 0) return std::nullopt;
    page.from = static_cast<std::size_t>(*number);
  }
  return page;
}

bool is_pageless(const Call& call) {
  return call.params.contains("pageless");
}

Json list_head(const Call& call, const std::string& kind) {
  std::string path = call.method->path;
  for (const auto& [name, value] : call.params) {
    const std::string mark = "{" + name + "}";
    const std::size_t at = path.find(mark);
    if (at != std::string::npos) path.replace(at, mark.size(), value);
  }
  return Json{{"kind", kind},
              {"id", path.substr(std::string_view("/compute/v1/").size())},
              {"selfLink", "https://www.googleapis.com" + path}};
}

}  // namespace

std::string Call::param(std::string_view name) const {
  const auto found = params.find(name);
  return found == params.end() ? std::string() : found->second;
}

std::string Call::query_value(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? std::string() : found->second;
}

Place Call::place() const {
  if (params.contains("region")) return {project(), "regions/" + param("region")};
  if (params.contains("zone")) return {project(), "zones/" + param("zone")};
  return {project(), "global"};
}

Reply refuse(int status, const std::string& reason, const std::string& message) {
  return {.status = status,
          .body = Json{
              {"error",
               {{"code", status},
                {"message", message},
                {"errors",
                 Json::array({Json{
                     {"message", message},
                     {"domain", status == 403 && reason != "forbidden" ? "usageLimits" : "global"},
                     {"reason", reason}}})},
                {"status", status_name(status)}}}}};
}

Reply not_found(const std::string& path) {
  return refuse(404, "notFound", fmt::format("The resource '{}' was not found", path));
}

Reply already_exists(const std::string& path) {
  return refuse(409, "alreadyExists", fmt::format("The resource '{}' already exists", path));
}

Reply invalid(const std::string& message) {
  return refuse(400, "invalid", message);
}

Handler find_handler(const std::string& method) {
  static const Handlers handlers = make_handlers();
  const auto found = handlers.find(method);
  return found == handlers.end() ? nullptr : found->second;
}

Reply answer_with(World& world, const Call& call, OperationSpec spec) {
  Operation& operation = world.start_operation(std::move(spec), call.method->name);
  operation.fault = call.operation_fault;
  operation.request_fault = call.request_fault;
  return {.status = 200, .body = to_json(world, operation)};
}

bool is_on_page(const Call& call, std::size_t number) {
  const auto page = page_of(call);
  if (!page || is_pageless(call) || !call.query_value("filter").empty()) return true;
  return number >= page->from && number - page->from < page->size;
}

Reply list_reply(const World& /*world*/,
                 const Call& call,
                 const std::string& kind,
                 std::vector<Json> items,
                 const std::string& key) {
  const auto page = page_of(call);
  if (!page) return invalid("Invalid value for field 'maxResults' or 'pageToken'.");
  const auto filter = parse_filter(call.query_value("filter"));
  if (!filter) return invalid("Invalid value for field 'filter': " + filter.error().what);
  std::erase_if(items, [&filter](const Json& item) { return !matches(*filter, item); });
  Json body = list_head(call, kind);
  const std::size_t size = is_pageless(call) ? items.size() : page->size;
  const std::size_t from = std::min(is_pageless(call) ? 0 : page->from, items.size());
  const std::size_t end = std::min(from + size, items.size());
  if (end < items.size()) body["nextPageToken"] = fmt::format("p-{}", end);
  if (from < end) {
    Json list = Json::array();
    for (std::size_t i = from; i < end; ++i) list.push_back(std::move(items[i]));
    body[key] = std::move(list);
  }
  return {.status = 200, .body = std::move(body)};
}

Reply aggregated_reply(const World& world,
                       const Call& call,
                       const std::string& kind,
                       std::vector<std::pair<std::string, Json>> items,
                       const std::string& key) {
  const auto page = page_of(call);
  if (!page) return invalid("Invalid value for field 'maxResults' or 'pageToken'.");
  const auto filter = parse_filter(call.query_value("filter"));
  if (!filter) return invalid("Invalid value for field 'filter': " + filter.error().what);
  std::erase_if(items, [&filter](const auto& item) { return !matches(*filter, item.second); });
  Json scopes = Json::object();
  const std::size_t from = std::min(page->from, items.size());
  const std::size_t end = std::min(from + page->size, items.size());
  for (std::size_t i = from; i < end; ++i)
    scopes[items[i].first][key].push_back(std::move(items[i].second));
  // Google names every empty scope, too, with a warning.
  for (const auto& [region, zones] : world.settings.regions) {
    std::vector<std::string> names{"regions/" + region};
    for (const std::string& zone : zones) names.push_back("zones/" + zone);
    for (const std::string& name : names) {
      if (scopes.contains(name)) continue;
      scopes[name]["warning"] = {
          {"code", "NO_RESULTS_ON_PAGE"},
          {"message", fmt::format("There are no results for scope '{}' on this page.", name)},
          {"data", Json::array({Json{{"key", "scope"}, {"value", name}}})}};
    }
  }
  Json body = list_head(call, kind);
  if (end < items.size()) body["nextPageToken"] = fmt::format("p-{}", end);
  body["items"] = std::move(scopes);
  return {.status = 200, .body = std::move(body)};
}

}  // namespace flex::emulator

// SPDX-License-Identifier: GPL-2.0-or-later
// The calls of the Compute API: one handler a method, on a World that the caller has locked.
#pragma once

#include "emulator/json.h"
#include "emulator/shapes.h"
#include "emulator/validate.h"
#include "emulator/world.h"

#include <optional>
#include <string>

namespace flex::emulator {

struct Call {
  const MethodShape* method = nullptr;
  std::map<std::string, std::string, std::less<>> params{};
  Query query{};
  Json body{};
  Json operation_fault{};  ///< error the operation is to end with
  Json request_fault{};    ///< error the resize request is to end with

  [[nodiscard]] std::string param(std::string_view name) const;
  [[nodiscard]] std::string query_value(const std::string& name) const;

  [[nodiscard]] std::string project() const { return param("project"); }

  /// "regions/R", "zones/Z" or "global".
  [[nodiscard]] Place place() const;
};

struct Reply {
  int status = 200;
  Json body{};
};

/// Google's form of an error.
[[nodiscard]] Reply refuse(int status, const std::string& reason, const std::string& message);
[[nodiscard]] Reply not_found(const std::string& path);
[[nodiscard]] Reply already_exists(const std::string& path);
[[nodiscard]] Reply invalid(const std::string& message);

using Handler = Reply (*)(World&, const Call&);
/// Nothing: in the shapes, but not served.
[[nodiscard]] Handler find_handler(const std::string& method);

/// Starts the operation of a call, with the faults that are to befall it, and answers with it.
[[nodiscard]] Reply answer_with(World& world, const Call& call, OperationSpec spec);

/// False: the item with this number will surely not be on the page that is asked for, and anything
/// may stand for it. Spares the rendering of thousands for a page of hundreds.
[[nodiscard]] bool is_on_page(const Call& call, std::size_t number);

/// Filters, pages and wraps the items of a list. `kind` is Google's, e.g. "compute#instanceList".
/// `key` is the array's name.
[[nodiscard]] Reply list_reply(const World& world,
                               const Call& call,
                               const std::string& kind,
                               std::vector<Json> items,
                               const std::string& key = "items");
/// The same by scope: {"items": {"zones/Z": {key: […]}}}.
[[nodiscard]] Reply aggregated_reply(const World& world,
                                     const Call& call,
                                     const std::string& kind,
                                     std::vector<std::pair<std::string, Json>> items,
                                     const std::string& key);

// ---- how state is shown (render.cc) ----
/// "https://www.googleapis.com/compute/v1/" + path.
[[nodiscard]] std::string url_of(const std::string& path);
[[nodiscard]] std::string path_of(const Place& place,
                                  const std::string& collection,
                                  const std::string& name);
/// The template's with what the VM is asked with merged into it.
[[nodiscard]] Json scheduling_of(const World& world,
                                 const Json& body,
                                 const std::string& template_key);
[[nodiscard]] Json to_json(const World& world, const Group& group);
[[nodiscard]] Json to_json(const World& world, const Group& group, const Request& request);
[[nodiscard]] Json to_json(const World& world,
                           const Group& group,
                           const std::string& name,
                           const Member& entry);
[[nodiscard]] Json to_json(const World& world, const Vm& vm);
[[nodiscard]] Json to_json(const World& world, const Operation& operation);
[[nodiscard]] Json to_json(const World& world,
                           const Thing& thing,
                           const std::string& collection,
                           const std::string& kind);

// ---- handlers ----
Reply groups_insert(World& world, const Call& call);
Reply groups_get(World& world, const Call& call);
Reply groups_list(World& world, const Call& call);
Reply groups_aggregated(World& world, const Call& call);
Reply groups_delete(World& world, const Call& call);
Reply groups_patch(World& world, const Call& call);
Reply groups_resize(World& world, const Call& call);
Reply groups_create_instances(World& world, const Call& call);
Reply groups_delete_instances(World& world, const Call& call);
Reply groups_list_managed(World& world, const Call& call);
Reply groups_list_errors(World& world, const Call& call);
Reply groups_list_configs(World& world, const Call& call);
Reply requests_insert(World& world, const Call& call);
Reply requests_get(World& world, const Call& call);
Reply requests_list(World& world, const Call& call);
Reply requests_cancel(World& world, const Call& call);
Reply requests_delete(World& world, const Call& call);
Reply instances_get(World& world, const Call& call);
Reply instances_list(World& world, const Call& call);
Reply instances_aggregated(World& world, const Call& call);
Reply instances_insert(World& world, const Call& call);
Reply instances_delete(World& world, const Call& call);
Reply instances_bulk_insert(World& world, const Call& call);
Reply instances_serial(World& world, const Call& call);
Reply operations_get(World& world, const Call& call);
Reply operations_list(World& world, const Call& call);
Reply operations_aggregated(World& world, const Call& call);
Reply templates_insert(World& world, const Call& call);
Reply templates_get(World& world, const Call& call);
Reply templates_list(World& world, const Call& call);
Reply templates_aggregated(World& world, const Call& call);
Reply templates_delete(World& world, const Call& call);
Reply policies_insert(World& world, const Call& call);
Reply policies_get(World& world, const Call& call);
Reply policies_list(World& world, const Call& call);
Reply policies_aggregated(World& world, const Call& call);
Reply policies_delete(World& world, const Call& call);
Reply regions_get(World& world, const Call& call);
Reply regions_list(World& world, const Call& call);
Reply zones_get(World& world, const Call& call);
Reply zones_list(World& world, const Call& call);
Reply projects_get(World& world, const Call& call);
Reply machine_types_get(World& world, const Call& call);
Reply machine_types_list(World& world, const Call& call);
Reply machine_types_aggregated(World& world, const Call& call);
Reply instance_groups_get(World& world, const Call& call);
Reply instance_groups_list(World& world, const Call& call);
Reply instance_groups_aggregated(World& world, const Call& call);
Reply autoscalers_list(World& world, const Call& call);
Reply autoscalers_aggregated(World& world, const Call& call);

/// The group that the call names, ready or not.
[[nodiscard]] Group* group_of(World& world, const Call& call);
[[nodiscard]] std::string group_path(const Call& call);

/// All entries of a place, in order of name: calls `take` with each.
template <class Map, class Take>
void for_each_in(Map& map, const Place& place, Take take) {
  const std::string prefix = place.key("");
  for (auto it = map.lower_bound(prefix); it != map.end() && it->first.starts_with(prefix); ++it)
    take(it->second);
}

}  // namespace flex::emulator

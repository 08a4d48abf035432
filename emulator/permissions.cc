// SPDX-License-Identifier: GPL-2.0-or-later
#include "emulator/permissions.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

namespace flex::emulator {

namespace {

using Permissions = std::vector<std::string>;

/// Methods whose permission is not simply "compute.<collection>.<verb>".
const std::map<std::string, Permissions>& special() {
  static const std::map<std::string, Permissions> table{
      {"instanceGroupManagers.insert",
       {"compute.instanceGroupManagers.create",
        "compute.instanceGroups.create",
        "compute.instanceTemplates.useReadOnly",
        "compute.instances.create"}},
      {"instanceGroupManagers.delete",
       {"compute.instanceGroupManagers.delete", "compute.instanceGroups.delete"}},
      {"instanceGroupManagers.deleteInstances",
       {"compute.instanceGroupManagers.update", "compute.instances.delete"}},
      {"instances.bulkInsert", {"compute.instances.create"}},
      {"instances.getSerialPortOutput", {"compute.instances.getSerialPortOutput"}},
  };
  return table;
}

std::string verb_of(const std::string& verb) {
  if (verb == "insert") return "create";
  if (verb == "aggregatedList" || verb.starts_with("list")) return "list";
  if (verb == "get" || verb == "wait") return "get";
  if (verb == "delete") return "delete";
  return "update";
}

Permissions permissions_of(std::string method) {
  // "regionInstanceGroupManagers" and "instanceGroupManagers" need the same; operations do not.
  constexpr std::string_view kRegion = "regionInstance";
  if (method.starts_with(kRegion)) method.replace(0, kRegion.size(), "instance");
  const auto known = special().find(method);
  if (known != special().end()) return known->second;
  const std::size_t dot = method.find('.');
  const std::string collection = method.substr(0, dot);
  const std::string verb = method.substr(dot + 1);
  // Resize requests are a part of their group.
  if (collection == "instanceGroupManagerResizeRequests")
    return {verb == "get" || verb == "list" ? "compute.instanceGroupManagers.get"
                                            : "compute.instanceGroupManagers.update"};
  return {"compute." + collection + "." + verb_of(verb)};
}

}  // namespace

std::string denied_permission(const std::string& method, const std::set<std::string>& denied) {
  if (denied.empty()) return {};
  for (const std::string& permission : permissions_of(method))
    if (denied.contains(permission)) return permission;
  return {};
}

}  // namespace flex::emulator

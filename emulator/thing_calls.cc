// SPDX-License-Identifier: GPL-2.0-or-later
// Calls on instance templates and resource policies: kept as they are given.
#include "emulator/api.h"
#include "lib/core/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex::emulator {

namespace {

using Things = std::map<std::string, Thing>;

struct Sort {
  Things World::*map;
  std::string collection{};
  std::string param{};
  std::string kind{};
};

const Sort& template_sort() {
  static const Sort sort{
      &World::templates, "instanceTemplates", "instanceTemplate", "compute#instanceTemplate"};
  return sort;
}

const Sort& policy_sort() {
  static const Sort sort{
      &World::policies, "resourcePolicies", "resourcePolicy", "compute#resourcePolicy"};
  return sort;
}

Reply insert(World& world, const Call& call, const Sort& sort) {
  Thing thing{.place = call.place(),
              .name = text_of(call.body, "name"),
              .created = world.clock.now(),
              .body = call.body};
  if (!is_rfc1035(thing.name))
    return invalid(fmt::format("Invalid value for field 'resource.name': '{}'.", thing.name));
  if (thing.place.is_regional() && !world.is_region(thing.place.location()))
    return not_found("projects/" + thing.place.project + "/" + thing.place.scope);
  const std::string path = path_of(thing.place, sort.collection, thing.name);
  const std::string key = thing.place.key(thing.name);
  if ((world.*sort.map).contains(key)) return already_exists(path);
  thing.id = ++world.next_id;
  const std::uint64_t id = thing.id;
  const Place place = thing.place;
  (world.*sort.map)[key] = std::move(thing);
  return answer_with(world,
                     call,
                     {.place = place,
                      .type = "insert",
                      .target = path,
                      .target_id = id,
                      .effect = Effect::ThingMade,
                      .subject = key,
                      .request = sort.collection});
}

Reply get(World& world, const Call& call, const Sort& sort) {
  const Place place = call.place();
  const std::string name = call.param(sort.param);
  const auto found = (world.*sort.map).find(place.key(name));
  if (found == (world.*sort.map).end()) return not_found(path_of(place, sort.collection, name));
  return {.status = 200, .body = to_json(world, found->second, sort.collection, sort.kind)};
}

Reply list(World& world, const Call& call, const Sort& sort) {
  std::vector<Json> items;
  for_each_in(world.*sort.map, call.place(), [&](const Thing& thing) {
    items.push_back(to_json(world, thing, sort.collection, sort.kind));
  });
  return list_reply(world, call, sort.kind + "List", std::move(items));
}

Reply aggregated(World& world, const Call& call, const Sort& sort) {
  std::vector<std::pair<std::string, Json>> items;
  for (const auto& [key, thing] : world.*sort.map)
    if (thing.place.project == call.project())
      items.emplace_back(thing.place.scope, to_json(world, thing, sort.collection, sort.kind));
  return aggregated_reply(
      world, call, sort.kind + "AggregatedList", std::move(items), sort.collection);
}

Reply remove(World& world, const Call& call, const Sort& sort) {
  const Place place = call.place();
  const std::string path = path_of(place, sort.collection, call.param(sort.param));
  const auto found = (world.*sort.map).find(place.key(call.param(sort.param)));
  if (found == (world.*sort.map).end()) return not_found(path);
  const auto user = std::find_if(world.groups.begin(), world.groups.end(), [&](const auto& entry) {
    if (entry.second.template_key == found->first) return true;
    const std::string policy =
        text_of(member(entry.second.body, "resourcePolicies"), "workloadPolicy");
    return !policy.empty() && policy.ends_with("/" + sort.collection + "/" + found->second.name);
  });
  if (user != world.groups.end())
    return refuse(
        400,
        "resourceInUseByAnotherResource",
        fmt::format("The resource '{}' is already being used by '{}'",
                    path,
                    path_of(user->second.place, "instanceGroupManagers", user->second.name)));
  return answer_with(world,
                     call,
                     {.place = place,
                      .type = "delete",
                      .target = path,
                      .target_id = found->second.id,
                      .effect = Effect::ThingGone,
                      .subject = found->first,
                      .request = sort.collection});
}

}  // namespace

Reply templates_insert(World& world, const Call& call) {
  return insert(world, call, template_sort());
}

Reply templates_get(World& world, const Call& call) {
  const Place place = call.place();
  static_cast<void>(world.find_template(
      place.project, path_of(place, "instanceTemplates", call.param("instanceTemplate"))));
  return get(world, call, template_sort());
}

Reply templates_list(World& world, const Call& call) {
  world.declare_templates(call.project());
  return list(world, call, template_sort());
}

Reply templates_aggregated(World& world, const Call& call) {
  world.declare_templates(call.project());
  return aggregated(world, call, template_sort());
}

Reply templates_delete(World& world, const Call& call) {
  return remove(world, call, template_sort());
}

Reply policies_insert(World& world, const Call& call) {
  const bool has_policy =
      std::any_of(call.body.items().begin(), call.body.items().end(), [](const auto& item) {
        return item.key().ends_with("Policy");
      });
  if (!has_policy) return invalid("Invalid value for field 'resource': no policy is specified.");
  Call shown = call;
  shown.body["status"] = "READY";
  return insert(world, shown, policy_sort());
}

Reply policies_get(World& world, const Call& call) {
  return get(world, call, policy_sort());
}

Reply policies_list(World& world, const Call& call) {
  return list(world, call, policy_sort());
}

Reply policies_aggregated(World& world, const Call& call) {
  return aggregated(world, call, policy_sort());
}

Reply policies_delete(World& world, const Call& call) {
  return remove(world, call, policy_sort());
}

}  // namespace flex::emulator

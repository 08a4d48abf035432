// SPDX-License-Identifier: GPL-2.0-or-later
// The state as JSON and back, so that it survives a restart.
#include "emulator/front.h"

namespace flex::emulator {

namespace {

constexpr int kVersion = 1;

}  // namespace

// NOLINTBEGIN: the library's macros
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Place, project, scope)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    Vm, project, zone, name, id, status, created, ends, boot_wall, group, template_key, body, is_up)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Member, request, zone, action, error)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Request,
                                                name,
                                                id,
                                                description,
                                                has_names,
                                                nodes,
                                                run_seconds,
                                                state,
                                                created,
                                                finished,
                                                is_cancelling,
                                                error,
                                                last_attempt)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Group,
                                                place,
                                                name,
                                                id,
                                                created,
                                                body,
                                                template_key,
                                                template_url,
                                                zones,
                                                is_ready,
                                                is_deleting,
                                                target_size,
                                                members,
                                                requests)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Thing, place, name, id, created, body)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Operation,
                                                place,
                                                name,
                                                id,
                                                type,
                                                target,
                                                target_id,
                                                inserted,
                                                ended,
                                                due_wall,
                                                status,
                                                error,
                                                metadata,
                                                effect,
                                                subject,
                                                request,
                                                names,
                                                plan,
                                                fault,
                                                request_fault)

// NOLINTEND

Json save_world(const World& world) {
  const double wall = world.clock.wall();
  return Json{{"version", kVersion},
              {"wall", wall},
              {"virtual", world.clock.to_virtual(wall)},
              {"factor", world.clock.factor()},
              {"next_id", world.next_id},
              {"groups", world.groups},
              {"vms", world.vms},
              {"operations", world.operations},
              {"templates", world.templates},
              {"policies", world.policies}};
}

bool load_world(World& world, const Json& json) {
  if (int_of(member(json, "version")) != kVersion) return false;
  try {
    world.clock.restore(json.at("wall").get<double>(),
                        json.at("virtual").get<double>(),
                        json.at("factor").get<double>());
    world.next_id = json.at("next_id").get<std::uint64_t>();
    json.at("groups").get_to(world.groups);
    json.at("vms").get_to(world.vms);
    json.at("operations").get_to(world.operations);
    json.at("templates").get_to(world.templates);
    json.at("policies").get_to(world.policies);
  } catch (const Json::exception&) {
    return false;
  }
  world.rebuild();
  return true;
}

}  // namespace flex::emulator

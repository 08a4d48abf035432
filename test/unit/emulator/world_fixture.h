// SPDX-License-Identifier: GPL-2.0-or-later
// A world with a clock of its own, and calls on it without HTTP.
#pragma once

#include "emulator/api.h"
#include "emulator/shapes.h"
#include "emulator/world.h"

#include <string>
#include <vector>

namespace flex::emulator {

class Cloud {
 public:
  Cloud() : world(Settings{}, [this] { return wall; }) {
    world.settings.templates = Json::parse(R"([{"name": "t"}])");
    world.settings.operation_ms = 1000;
    world.settings.boot_delay_ms = 2000;
  }

  double wall = 1000000;
  World world;

  void pass(double seconds) {
    wall += seconds;
    world.tick();
  }

  Reply call(const std::string& verb, const std::string& path, const Json& body = Json::object()) {
    const auto route = shapes().find(verb, "/compute/v1/projects/p/regions/us-central1" + path);
    if (!route) return {.status = 404};
    world.tick();
    Call call{.method = route->method, .params = route->params, .body = body};
    return find_handler(route->method->name)(world, call);
  }

  void make_group(const std::string& name, Json change = Json::object()) {
    Json body{{"name", name},
              {"instanceTemplate", "global/instanceTemplates/t"},
              {"distributionPolicy",
               {{"targetShape", "ANY_SINGLE_ZONE"},
                {"zones", {{{"zone", "zones/us-central1-a"}}, {{"zone", "zones/us-central1-b"}}}}}},
              {"instanceLifecyclePolicy", {{"defaultActionOnFailure", "DO_NOTHING"}}}};
    body.merge_patch(change);
    static_cast<void>(call("POST", "/instanceGroupManagers", body));
    pass(1);
  }

  Reply ask(const std::string& group,
            const std::string& name,
            const std::vector<std::string>& nodes,
            std::int64_t seconds = 600) {
    Json body{{"name", name}, {"requestedRunDuration", {{"seconds", seconds}}}};
    for (const std::string& node : nodes) body["instances"].push_back({{"name", node}});
    return call("POST", "/instanceGroupManagers/" + group + "/resizeRequests", body);
  }

  Group& group(const std::string& name) { return world.groups.at("p/regions/us-central1/" + name); }

  Request& request(const std::string& in, const std::string& name) {
    return group(in).requests.at(name);
  }
};

}  // namespace flex::emulator

// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/routes.h"

#include "lib/fleet/groups.h"
#include "test/support/builders.h"
#include "test/support/catch.h"

using namespace flex;
using namespace flex::test;

TEST_CASE("routes_of: the nodeset's own keys, then what on_stockout changes, entry by entry") {
  NodesetConfig set = nodeset("a", nodes("a", 2));
  set.on_stockout = {{.wait = 1min, .zones = {"us-central1-f"}},
                     {.wait = 1min, .mode = Mode::Individual},
                     {.wait = 1min, .mode = Mode::BulkInsert, .instance_template = "spot"}};
  const auto own = routes_of(set);
  REQUIRE(own.size() == 1);
  CHECK(own[0].variant.empty());
  CHECK(own[0].zones == set.zones);
  const auto second = routes_of(set, 2);
  CHECK(second[0].variant == "s2");
  CHECK(second[0].mode == Mode::Individual);
  CHECK(second[0].zones == std::vector<std::string>{"us-central1-f"});
  CHECK(second[0].instance_template == "a-flex");
  const auto beyond = routes_of(set, 9);
  CHECK(beyond[0].step == 3);
  CHECK(beyond[0].mode == Mode::BulkInsert);
  CHECK(beyond[0].instance_template == "spot");
  CHECK(may_use_bulk(set));
}

TEST_CASE("routes_of: a race has a group for each of its zones") {
  NodesetConfig set = nodeset("a", nodes("a", 2));
  set.race = 2;
  set.zones = {"us-central1-a", "us-central1-ai1a", "us-central1-f"};
  const auto routes = routes_of(set);
  REQUIRE(routes.size() == 2);
  CHECK(routes[0].variant == "za");
  CHECK(routes[1].variant == "zai1a");
  CHECK(routes[0].zones == std::vector<std::string>{"us-central1-a"});
  CHECK(routes[1].zones == std::vector<std::string>{"us-central1-ai1a", "us-central1-f"});
  CHECK(routes[0].is_race);
  set.on_stockout = {{.wait = 1min, .zones = {"us-central1-f"}}};
  REQUIRE(routes_of(set, 1).size() == 1);
  CHECK(routes_of(set, 1)[0].variant == "s1");
}

TEST_CASE("group_capacity: a placement policy holds only so many VMs together") {
  NodesetConfig set = nodeset("a", nodes("a", 2));
  CHECK(group_capacity(set) == 2000);
  set.placement.max_distance = 1;
  CHECK(group_capacity(set) == 22);
  set.placement.max_distance = 2;
  CHECK(group_capacity(set) == 150);
  set.machine_type = "a3-ultragpu-8g";
  CHECK(group_capacity(set) == 256);
  set.placement.max_distance = 3;
  CHECK(group_capacity(set) == 1500);
}

TEST_CASE("request_way: as the description says") {
  const auto written = [](const RequestWay& way) {
    ResizeRequest made;
    made.description = request_description(7, nodes("a", 2), way);
    return request_way(made);
  };
  const RequestWay way{.attempt = 3, .step = 2, .renewed = 1, .is_race = true};
  CHECK(written(way) == way);
  CHECK(written({}) == RequestWay{});
  CHECK(RequestWay{.step = 1}.follows({.attempt = 5}));
  CHECK(RequestWay{.attempt = 2}.follows({}));
  CHECK(RequestWay{.attempt = 2, .renewed = 1}.follows({.attempt = 4}));
  // Two lanes of one race stand side by side, whatever name was free.
  CHECK_FALSE(RequestWay{.attempt = 2, .is_race = true}.follows({.is_race = true}));
}

TEST_CASE("run_duration: bulkInsert takes 30 s, individual VMs what their template says") {
  NodesetConfig set = nodeset("a", nodes("a", 1));
  set.run_duration_margin = 0s;
  CHECK(run_duration(set, 10s, Mode::BulkInsert).run == 30s);
  CHECK(run_duration(set, 60s, Mode::BulkInsert).run == 60s);
  CHECK(run_duration(set, 60s, Mode::Queued).run == 10min);
  CHECK(run_duration(set, 60s, Mode::Individual).run == 7 * 24h);
  CHECK(run_duration(set, 8 * 24h, Mode::Individual).is_capped);
}

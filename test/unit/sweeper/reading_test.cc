// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/reading.h"

#include "test/support/catch.h"

#include <regex>

using namespace flex;

namespace {

SweptGroup quiet() {
  SweptGroup group;
  group.group.name = {"hpc-a"};
  group.group.target_size = 2;
  group.group.actions.none = 2;
  return group;
}

ResizeRequest request(RequestState state) {
  return {.name = {"j1-x"}, .state = state};
}

Instance vm(const std::string& name, InstanceStatus status = InstanceStatus::Running) {
  return {.name = {name},
          .url = "https://h/projects/p/zones/r-a/instances/" + name,
          .id = "7",
          .status = status};
}

constexpr Reading kBoth{.requests = true, .instances = true};

}  // namespace

TEST_CASE("reading: a group that is new or has changed is read") {
  const SweptGroup last = quiet();
  CHECK(what_to_read(nullptr, last.group) == kBoth);
  CHECK(what_to_read(&last, last.group) == Reading{});
  Group changed = last.group;
  changed.target_size = 3;
  CHECK(what_to_read(&last, changed) == kBoth);
  changed = last.group;
  changed.actions.deleting = 1;
  CHECK(what_to_read(&last, changed) == kBoth);
  changed = last.group;
  changed.created = TimePoint{Seconds{1}};
  CHECK(what_to_read(&last, changed) == kBoth);
  changed = last.group;
  changed.is_stable = false;
  CHECK(what_to_read(&last, changed) == kBoth);
  SweptGroup written = quiet();
  written.readings_due = 1;
  CHECK(what_to_read(&written, written.group) == kBoth);
}

TEST_CASE("reading: what is under way is looked at") {
  SweptGroup waits = quiet();
  waits.group.is_stable = false;
  waits.requests = {request(RequestState::Accepted)};
  CHECK(what_to_read(&waits, waits.group) == Reading{.requests = true, .instances = false});
  waits.requests = {request(RequestState::Provisioning)};
  CHECK(what_to_read(&waits, waits.group) == kBoth);
  waits.requests = {request(RequestState::Creating)};
  CHECK(what_to_read(&waits, waits.group) == kBoth);
  // Neither stable nor waiting: it is being changed.
  waits.requests = {request(RequestState::Succeeded)};
  CHECK(what_to_read(&waits, waits.group) == kBoth);
  waits.group.kind = GroupKind::Individual;
  CHECK(what_to_read(&waits, waits.group) == Reading{.requests = false, .instances = true});
  waits.group.is_stable = true;
  CHECK(what_to_read(&waits, waits.group) == Reading{});
}

TEST_CASE("reading: requests that came, went or took another state") {
  const std::vector<ResizeRequest> one{request(RequestState::Accepted)};
  CHECK_FALSE(have_changed(one, one));
  CHECK(have_changed(one, {}));
  CHECK(have_changed({}, one));
  CHECK(have_changed(one, {request(RequestState::Failed)}));
  std::vector<ResizeRequest> attempt = one;
  attempt[0].last_attempt = ProviderError{.code = "STOCKOUT"};
  CHECK_FALSE(have_changed(one, attempt));
}

TEST_CASE("reading: the rest is read in some minutes where that is cheap, and a few in any case") {
  CHECK(spare_readings(3, 1) == 3);
  CHECK(spare_readings(200, 1) == 10);
  CHECK(spare_readings(200, 50) == 5);
  CHECK(spare_readings(500, 100) == 3);
  CHECK(spare_readings(5000, 1) == 29);
}

TEST_CASE("reading: the VMs of a zone are those of the group or not") {
  SweptGroup group = quiet();
  group.instances = {vm("a-0"), {.name = {"a-1"}, .action = InstanceAction::Creating}};
  VmsByKey vms{{"r-a/a-0", vm("a-0")}};
  CHECK(shows_same(group, vms));
  CHECK_FALSE(shows_same(group, {}));
  vms["r-a/a-0"].status = InstanceStatus::Stopping;
  CHECK_FALSE(shows_same(group, vms));
  vms["r-a/a-0"] = vm("a-0");
  vms["r-a/a-0"].id = "8";
  CHECK_FALSE(shows_same(group, vms));
  vms["r-a/a-0"].id = "";
  CHECK(shows_same(group, vms));
  // In another zone.
  CHECK_FALSE(shows_same(group, {{"r-b/a-0", vm("a-0")}}));
  // An entry whose VM was gone, and has come back.
  group.instances = {vm("a-0", InstanceStatus::None)};
  CHECK(shows_same(group, {}));
  CHECK_FALSE(shows_same(group, vms));
  CHECK(zones_of(group) == std::set<std::string>{"r-a"});
}

TEST_CASE("reading: a pattern for names") {
  const std::regex pattern(pattern_of({"gpu-1", "gpu-12", "h4d-a"}));
  CHECK(std::regex_match("gpu-7", pattern));
  CHECK(std::regex_match("h4d-a", pattern));
  CHECK_FALSE(std::regex_match("gpux-1", pattern));
  CHECK(pattern_of({}).empty());
  std::set<std::string> many;
  for (int i = 0; i < 200; ++i) many.insert("n" + std::to_string(i) + "-x");
  CHECK(pattern_of(many).empty());
}

// SPDX-License-Identifier: GPL-2.0-or-later
// Files that flexctl and the sweeper tell each other and flex-resume by; templates and groups that
// are the same in other words.
#include "lib/fleet/cancelled.h"
#include "lib/fleet/loose.h"
#include "lib/fleet/routes.h"
#include "lib/fleet/view.h"
#include "test/support/builders.h"
#include "test/support/catch.h"
#include "test/support/fake_cloud.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <unistd.h>

using namespace flex;
using namespace flex::test;

namespace {

struct Directory {
  std::string path =
      std::filesystem::temp_directory_path() / ("flex-shut-" + std::to_string(::getpid()));

  Directory() { std::filesystem::create_directory(path); }

  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  ~Directory() { std::filesystem::remove_all(path); }
};

CancelledWay way(const std::string& group, int since) {
  return {.waiter = "a job 7",
          .restart_count = 2,
          .group = {group},
          .request = {"j7-x"},
          .by = "ann",
          .since = TimePoint{Seconds{since}}};
}

}  // namespace

TEST_CASE("cancelled: written, read, dropped when it is old, taken back", "[fleet]") {
  const Directory dir;
  CHECK(load_cancelled(dir.path)->empty());
  REQUIRE(add_cancelled(dir.path, way("g", 1000)));
  REQUIRE(add_cancelled(dir.path, way("h", 2000)));
  CHECK(*load_cancelled(dir.path) == CancelledWays{way("g", 1000), way("h", 2000)});
  REQUIRE(remove_cancelled(dir.path, way("g", 1000)));
  CHECK(*load_cancelled(dir.path) == CancelledWays{way("h", 2000)});
  REQUIRE(add_cancelled(dir.path, way("k", 200000)));
  CHECK(*load_cancelled(dir.path) == CancelledWays{way("k", 200000)});
  REQUIRE(remove_cancelled(dir.path, way("k", 200000)));
  CHECK_FALSE(std::filesystem::exists(cancelled_path(dir.path)));
  CHECK_FALSE(parse_cancelled("{}"));
  CHECK_FALSE(parse_cancelled("[{}]"));
  CHECK(waiter_key("a", 7, {"a-0"}) == "a job 7");
  CHECK(waiter_key("a", 0, {"a-0"}) == "a-0");
}

TEST_CASE("cancelled: also before any sweeper has made the directory", "[fleet]") {
  const Directory dir;
  const std::string below = dir.path + "/flex-start";
  REQUIRE(add_cancelled(below, way("g", 1000)));
  CHECK(*load_cancelled(below) == CancelledWays{way("g", 1000)});
}

TEST_CASE("cancelled: one after the other", "[fleet]") {
  const Directory dir;
  const std::string below = dir.path + "/flex-start";
  auto first = std::make_unique<Result<FileLock>>(lock_cancelled(below));
  REQUIRE(*first);
  auto second = std::async(std::launch::async, [&] { return lock_cancelled(below).has_value(); });
  CHECK(second.wait_for(std::chrono::milliseconds{100}) == std::future_status::timeout);
  first.reset();
  CHECK(second.get());
}

TEST_CASE("loose: which nodesets have VMs in no group", "[fleet]") {
  const Directory dir;
  CHECK(load_loose(dir.path).empty());
  REQUIRE(write_loose_file(dir.path, {"a", "b"}));
  CHECK(load_loose(dir.path) == NodesetNames{"a", "b"});
  REQUIRE(write_loose_file(dir.path, {}));
  CHECK_FALSE(std::filesystem::exists(loose_path(dir.path)));
}

TEST_CASE("add_loose: VMs that an earlier config has made", "[fleet]") {
  FakeCloud cloud;
  const Config cfg = config({nodeset("a", nodes("a", 2)), nodeset("b", nodes("b", 2))});
  cloud.add_loose("a-0", ownership_mark("hpc", "a") + " job=7");
  FleetView fleet = fetch_fleet(cloud, cfg, "hpc", nodes("a", 2));
  CHECK(cloud.count("fetch_loose_instances") == 0);
  add_loose(cloud, cfg, "hpc", {}, fleet);
  CHECK(cloud.count("fetch_loose_instances") == 0);
  add_loose(cloud, cfg, "hpc", {"a", "b"}, fleet);
  CHECK(cloud.count("fetch_loose_instances") == 1);
  CHECK(fleet.at(0).groups.at({}).instances.size() == 1);
  CHECK_FALSE(fleet.contains(1));
  add_loose(cloud, cfg, "hpc", {"a"}, fleet);
  CHECK(cloud.count("fetch_loose_instances") == 1);
}

TEST_CASE("is_same_template: names and URLs", "[fleet]") {
  const std::string base = "https://www.googleapis.com/compute/v1/projects/p/";
  CHECK(is_same_template("t", base + "global/instanceTemplates/t"));
  CHECK(is_same_template("global/instanceTemplates/t", base + "global/instanceTemplates/t"));
  CHECK(is_same_template("projects/p/global/instanceTemplates/t",
                         base + "global/instanceTemplates/t"));
  CHECK(is_same_template("regions/r/instanceTemplates/t", base + "regions/r/instanceTemplates/t"));
  CHECK(is_same_template("projects/123/global/instanceTemplates/t",
                         base + "global/instanceTemplates/t"));
  CHECK_FALSE(is_same_template("t", base + "global/instanceTemplates/u"));
  CHECK_FALSE(is_same_template("t", base + "regions/r/instanceTemplates/t"));
  CHECK_FALSE(
      is_same_template("regions/s/instanceTemplates/t", base + "regions/r/instanceTemplates/t"));
  CHECK_FALSE(is_same_template("projects/q/global/instanceTemplates/t",
                               base + "global/instanceTemplates/t"));
}

TEST_CASE("is_outdated: no step of the nodeset has its zones, template and kind", "[fleet]") {
  NodesetConfig set = nodeset("a", nodes("a", 2));
  Group made = group("hpc-a", "hpc", "a");
  made.zones = {"us-central1-b", "us-central1-a"};
  made.instance_template = "projects/p/global/instanceTemplates/a-flex";
  CHECK_FALSE(is_outdated(made, set));
  made.kind = GroupKind::Individual;
  CHECK(is_outdated(made, set));
  made.kind = GroupKind::Queued;
  made.zones = {"us-central1-c"};
  CHECK(is_outdated(made, set));
  set.on_stockout = {{.wait = 1h, .zones = {"us-central1-c"}}};
  CHECK_FALSE(is_outdated(made, set));
}

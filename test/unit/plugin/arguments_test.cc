// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/arguments.h"

#include "test/support/catch.h"

#include <string>
#include <vector>

using namespace flex;
using namespace flex::plugin;
using namespace std::chrono_literals;

namespace {

Result<Arguments> parse(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return parse_arguments(pointers);
}

}  // namespace

TEST_CASE("parse_arguments: without any, Google's limits and the spool directory", "[plugin]") {
  const auto arguments = parse({});
  REQUIRE(arguments);
  CHECK(arguments->max_run == 168h);
  CHECK(arguments->max_wait == 168h);
  CHECK(arguments->cache_dir.empty());
  CHECK(arguments->tells_lease);
}

TEST_CASE("parse_arguments: all of them, in any order", "[plugin]") {
  const auto arguments =
      parse({"lease=off", "cache_dir=/run/%n/flex=start", "max_wait=12h", "max_run=2-00:00:00"});
  REQUIRE(arguments);
  CHECK(arguments->max_run == 48h);
  CHECK(arguments->max_wait == 12h);
  CHECK(arguments->cache_dir == "/run/%n/flex=start");
  CHECK(!arguments->tells_lease);
  CHECK(parse({"lease=on"})->tells_lease);
}

TEST_CASE("parse_arguments: a wrong one is refused in one sentence", "[plugin]") {
  const auto [word, why] = GENERATE(table<std::string, std::string>({
      {"max_run=8d", "max_run=8d: too long, VMs live from 10m to 7d"},
      {"max_run=5", "max_run=5: too short, VMs live from 10m to 7d"},
      {"max_wait=0", "max_wait=0: too short, a job may wait from 1s to 7d"},
      {"max_run=",
       "max_run=: not a time; write minutes, 90m, 4h, 2d or D-HH:MM:SS, VMs live from "
       "10m to 7d"},
      {"cache_dir=spool", "cache_dir: not an absolute path"},
      {"cache_dir=", "cache_dir: not an absolute path"},
      {"lease=no", "lease: write on or off"},
      {"lease", "lease: not of the form key=value"},
      {"maxrun=4h", "maxrun: not known; there are max_run=, max_wait=, cache_dir= and lease="},
      {"=", ": not known; there are max_run=, max_wait=, cache_dir= and lease="},
  }));
  const auto arguments = parse({word});
  REQUIRE(!arguments);
  CHECK(arguments.error().what == why);
}

TEST_CASE("parse_arguments: the same one twice is a mistake", "[plugin]") {
  const auto arguments = parse({"max_run=4h", "lease=on", "max_run=5h"});
  REQUIRE(!arguments);
  CHECK(arguments.error().what == "max_run: given twice");
}

TEST_CASE("expand_path: %n and %h, as in slurm.conf", "[plugin]") {
  const NodeNames names{.node = "a3u-7", .host = "vm"};
  CHECK(expand_path("/spool/%n/x", names) == "/spool/a3u-7/x");
  CHECK(expand_path("%h%n%", names) == "vma3u-7%");
  CHECK(expand_path("/spool/%m%%", names) == "/spool/%m%%");
  CHECK(expand_path("", names).empty());
}

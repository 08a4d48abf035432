// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/pause.h"

#include "test/support/catch.h"

#include <slurm/slurm.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace flex;

namespace {

const Pause kPause{.by = "ann", .reason = "new image", .since = TimePoint{Seconds{1'800'000'000}}};

/// A directory of its own, gone in the end.
struct Scratch {
  std::string path = std::filesystem::temp_directory_path() / "flex-pause-XXXXXX";

  Scratch() { REQUIRE(::mkdtemp(path.data()) != nullptr); }

  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  Scratch(Scratch&&) = delete;
  Scratch& operator=(Scratch&&) = delete;

  ~Scratch() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("pauses: what is written is read again", "[fleet]") {
  const Scratch scratch;
  CHECK(load_pauses(scratch.path)->empty());
  const Pauses pauses{{"a", kPause}, {"b", {.by = "bob", .reason = "", .since = {}}}};
  REQUIRE(write_pauses(scratch.path, pauses));
  CHECK(*load_pauses(scratch.path) == pauses);
  REQUIRE(write_pauses(scratch.path, {}));
  CHECK_FALSE(std::filesystem::exists(pauses_path(scratch.path)));
  CHECK(write_pauses(scratch.path, {}));
}

TEST_CASE("pauses: what nobody wrote is refused, and is not taken for none", "[fleet]") {
  for (const char* text : {"", "[]", "{", "3", R"({"a":1})", R"({"a":{"by":"x"}})"})
    CHECK_FALSE(parse_pauses(text));
  const Scratch scratch;
  std::ofstream(pauses_path(scratch.path)) << "{";
  CHECK_FALSE(load_pauses(scratch.path));
}

TEST_CASE("pauses: a drained node says that its nodeset is paused, and why", "[fleet]") {
  Node node;
  node.state = NODE_STATE_IDLE | NODE_STATE_CLOUD | NODE_STATE_POWERED_DOWN | NODE_STATE_DRAIN;
  node.reason = pause_reason("a", kPause);
  CHECK(is_stop_drained(node, "a"));
  CHECK_FALSE(is_stop_drained(node, "ab"));
  CHECK(why_stopped(node, "a") == "paused by ann: new image");
  node.reason = "flex: nodeset a stopped: 3 boots in a row failed; mend it, then: scontrol update";
  CHECK(why_stopped(node, "a") == "3 boots in a row failed");
  node.reason = "broken";
  CHECK_FALSE(is_stop_drained(node, "a"));
  CHECK(Pause{.by = "bob"}.why() == "paused by bob");
}

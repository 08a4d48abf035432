// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/node_extra.h"
#include "test/support/catch.h"
#include "test/support/scene.h"

#include <nlohmann/json.hpp>

using namespace flex;
using namespace flex::test;

namespace {

/// "nodes: extra" of what the last round writes.
std::vector<std::string> notes(const Scene& scene) {
  std::vector<std::string> texts;
  for (const Action& action : scene.actions) {
    const auto* note = std::get_if<NoteLease>(&action.what);
    if (note != nullptr)
      texts.push_back(fold_hostlist(note->nodes) + ": " +
                      (note->lease ? write_lease(*note->lease) : "none"));
  }
  return texts;
}

using Texts = std::vector<std::string>;

/// Job 7 runs on a-[0-1], whose VMs have an end.
Scene with_vms() {
  Scene scene;
  scene.running_job(7, "a-[0-1]");
  scene.asked(7, "a-[0-1]", RequestState::Succeeded);
  scene.vms("a-[0-1]");
  for (const char* name : {"a-0", "a-1"})
    scene.entry(name).terminates = TimePoint{Seconds{1'800'009'000}};
  return scene;
}

const std::string kToken = "flex(end=1800009000,nodeset=a,request=j7-x)";

}  // namespace

TEST_CASE("node_note: the end of a VM is written once, for all nodes that share it") {
  Scene scene = with_vms();
  scene.raw_round();
  CHECK(notes(scene) == Texts{"a-[0-1]: " + kToken});
  scene.node("a-0").extra = "rack 7 " + kToken;
  scene.node("a-1").extra = kToken;
  scene.raw_round();
  CHECK(notes(scene).empty());
  // The request is deleted after an hour; what was said of it stays.
  scene.owned().requests.clear();
  scene.raw_round();
  CHECK(notes(scene).empty());
}

TEST_CASE("node_note: each end by itself, and nothing of VMs whose end is not known") {
  Scene scene = with_vms();
  scene.entry("a-1").terminates = TimePoint{Seconds{1'800'009'300}};
  scene.running_job(8, "a-2");
  scene.vms("a-2");
  scene.raw_round();
  CHECK(notes(scene) ==
        Texts{"a-0: " + kToken, "a-1: flex(end=1800009300,nodeset=a,request=j7-x)"});
}

TEST_CASE(
    "node_note: what is said of the VM before goes, also while the end of the new one is not "
    "known") {
  Scene scene = with_vms();
  scene.node("a-0").extra = kToken;
  scene.entry("a-0").terminates.reset();
  scene.node("a-1").extra = kToken;
  // And of a node that is in no nodeset any more.
  Node& other = scene.shot.nodes.items.emplace_back();
  other.name = {"old-0"};
  other.state = kOff;
  other.extra = "flex(end=1800009000,nodeset=old)";
  scene.raw_round();
  CHECK(notes(scene) == Texts{"a-0,old-0: none"});
}

TEST_CASE("node_note: taken away when the VM is gone, written anew for the next one") {
  Scene scene = with_vms();
  scene.node("a-0").extra = kToken;
  scene.node("a-1").extra = kToken;
  scene.entry("a-1").terminates = TimePoint{Seconds{1'800'090'000}};
  scene.owned().requests.clear();
  std::erase_if(scene.owned().instances,
                [](const Instance& entry) { return entry.name.text == "a-0"; });
  scene.raw_round();
  CHECK(notes(scene) == Texts{"a-1: flex(end=1800090000,nodeset=a)", "a-0: none"});
}

TEST_CASE("with_lease: the text of a JSON object is as it was, with ours and without") {
  const NodeLease lease{
      .end = TimePoint{Seconds{1'800'009'000}}, .nodeset = "a", .request = "j7-x"};
  const auto text = GENERATE(as<std::string>{},
                             R"({"big":12345678901234567890123,"f":1.10,"e":1e3})",
                             R"( {"a": 1, "a": 2} )",
                             R"({ })",
                             R"x({"flexible":"flex(run=4h)"})x");
  const std::string noted = with_lease(text, lease);
  INFO(noted);
  CHECK(read_lease(noted) == lease);
  CHECK(nlohmann::json::parse(noted).at("flex") == kToken);
  CHECK(with_lease(noted, std::nullopt) == text);
  // Somebody wrote it anew.
  CHECK(with_lease(R"({"flex" : ")" + kToken + R"(" , "a":1})", std::nullopt) == R"({ "a":1})");
}

TEST_CASE("with_lease: what others wrote stays") {
  const NodeLease lease{
      .end = TimePoint{Seconds{1'800'009'000}}, .nodeset = "a", .request = "j7-x"};
  NodeLease next = lease;
  next.request = "j8-y";
  const std::string other = "flex(end=1800009000,nodeset=a,request=j8-y)";
  CHECK(with_lease("", lease) == kToken);
  CHECK(with_lease(kToken, next) == other);
  CHECK(with_lease(kToken, std::nullopt).empty());
  CHECK(with_lease("rack 7", lease) == "rack 7 " + kToken);
  CHECK(with_lease("rack 7 " + kToken + ", spare", next) == "rack 7 " + other + ", spare");
  CHECK(with_lease("rack 7 " + kToken, std::nullopt) == "rack 7");
  CHECK(with_lease(kToken + " rack 7", std::nullopt) == "rack 7");
  CHECK(with_lease("flex(run=4h)", std::nullopt) == "flex(run=4h)");
  CHECK(with_lease(R"({"rack":7})", lease) == R"({"rack":7,"flex":")" + kToken + "\"}");
  CHECK(with_lease(R"({"rack":7,"flex":")" + kToken + "\"}", std::nullopt) == R"({"rack":7})");
  CHECK(with_lease("{not json", lease) == "{not json " + kToken);
  CHECK(with_lease("{}", lease) == R"({"flex":")" + kToken + "\"}");
  CHECK(with_lease(R"({"rack": 7})", std::nullopt) == R"({"rack": 7})");
}

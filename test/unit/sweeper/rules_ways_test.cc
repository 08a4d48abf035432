// SPDX-License-Identifier: GPL-2.0-or-later
// Several requests for the same nodes, VMs without requests, policies.
#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;

namespace {

/// A request in one of the nodeset's other groups.
ResizeRequest& asked_in(Scene& scene,
                        const std::string& group,
                        JobId id,
                        const std::string& hostlist,
                        const RequestWay& way,
                        RequestState state = RequestState::Accepted) {
  SweptGroup& home = scene.owned(group);
  const auto members = names_in(hostlist);
  ResizeRequest made = request("j" + std::to_string(id) + "-" + group, state, members);
  made.group = home.group.name;
  made.description = request_description(id, members, way);
  made.created = scene.shot.now;
  made.run_duration = std::chrono::minutes{75};
  if (made.is_active())
    for (const NodeName& member : members) home.instances.push_back(queued(member));
  home.requests.push_back(made);
  return home.requests.back();
}

/// Entries that wait one by one.
SweptGroup& alone_in(Scene& scene,
                     const std::string& hostlist,
                     const std::string& name = "hpc-a",
                     std::size_t step = 0) {
  SweptGroup& home = scene.owned(name);
  home.group.kind = GroupKind::Individual;
  home.group.step = step;
  for (const NodeName& member : names_in(hostlist)) home.instances.push_back(queued(member));
  return home;
}

const AskForNodes* ask_in(const Scene& scene) {
  for (const Action& action : scene.actions) {
    if (const auto* ask = std::get_if<AskForNodes>(&action.what)) return ask;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("surplus_request: when one of a race is served, the others are cancelled") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  asked_in(scene, "hpc-a-za", 7, "a-[0-1]", {.is_race = true});
  asked_in(scene, "hpc-a-zb", 7, "a-[0-1]", {.is_race = true});
  CHECK(scene.rounds(3).empty());
  scene.owned("hpc-a-za").requests[0].state = RequestState::Succeeded;
  scene.vms("a-[0-1]", "hpc-a-za");
  CHECK(scene.round() ==
        Texts{"surplus_request cancel_request a-[0-1] @hpc-a-zb/j7-hpc-a-zb job=7"});
}

TEST_CASE("race: a zone without a request is asked for, after the pause of a retry") {
  Scene scene;
  scene.set().race = 2;
  scene.waiting_job(7, "a-[0-1]");
  asked_in(scene, "hpc-a-za", 7, "a-[0-1]", {.is_race = true});
  CHECK(scene.rounds(2).empty());
  CHECK(scene.round(Seconds{60}) == Texts{"unrequested_node ask a-[0-1] job=7"});
  const AskForNodes* ask = ask_in(scene);
  REQUIRE(ask->plan.groups.size() == 1);
  CHECK(ask->plan.groups[0].spec.name.text == "hpc-a-zb");
  CHECK(ask->plan.groups[0].requests[0].spec.nodes == names_in("a-[0-1]"));
  asked_in(scene, "hpc-a-zb", 7, "a-[0-1]", {.is_race = true});
  CHECK(scene.rounds(3, Seconds{60}).empty());
}

TEST_CASE("surplus_request: of two VMs of one name the older stays") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  scene.vms("a-0", "hpc-a-za");
  scene.vms("a-0", "hpc-a-zb");
  scene.owned("hpc-a-za").instances[0].id = "1";
  scene.owned("hpc-a-zb").instances[0].id = "2";
  scene.owned("hpc-a-za").instances[0].terminates = scene.shot.now + Seconds{5000};
  scene.owned("hpc-a-zb").instances[0].terminates = scene.shot.now + Seconds{4000};
  const auto texts = scene.round();
  CHECK(std::find(texts.begin(), texts.end(), "surplus_request delete_instances a-0 @hpc-a-za") !=
        texts.end());
}

TEST_CASE("surplus_request: the old request stays until the new one is in the queue") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  scene.asked(7, "a-[0-1]");
  ResizeRequest& fresh = asked_in(
      scene, "hpc-a-r", 7, "a-[0-1]", {.attempt = 2, .renewed = 1}, RequestState::Creating);
  CHECK(scene.rounds(3).empty());
  fresh.state = RequestState::Accepted;
  CHECK(scene.round() == Texts{"surplus_request cancel_request a-[0-1] @hpc-a/j7-x job=7"});
}

TEST_CASE("resubmit: a request that has waited too long is asked for once more, elsewhere") {
  Scene scene;
  scene.set().resubmit_after = Seconds{3600};
  scene.waiting_job(7, "a-[0-1]");
  scene.asked(7, "a-[0-1]");
  CHECK(scene.rounds(2).empty());
  CHECK(scene.round(Seconds{3600}) == Texts{"resubmit ask a-[0-1] job=7"});
  const AskForNodes* ask = ask_in(scene);
  REQUIRE(ask != nullptr);
  REQUIRE(ask->plan.groups.size() == 1);
  CHECK(ask->plan.groups[0].spec.name.text == "hpc-a-r");
  CHECK(ask->plan.groups[0].requests[0].way == RequestWay{.attempt = 2, .renewed = 1});
  // Once it is there, no third one.
  asked_in(scene, "hpc-a-r", 7, "a-[0-1]", {.attempt = 2, .renewed = 1}, RequestState::Creating);
  CHECK(scene.round().empty());
}

TEST_CASE("resubmit: in the old one's slot where there is no other, and not without a job") {
  Scene scene;
  scene.set().resubmit_after = Seconds{60};
  scene.settings.api.max_active_requests = 1;
  scene.waiting_job(7, "a-[0-1]");
  scene.asked(7, "a-[0-1]");
  CHECK(scene.round(Seconds{100}) == Texts{"resubmit ask a-[0-1] job=7"});
  REQUIRE(ask_in(scene)->plan.cancels.size() == 1);
  CHECK(ask_in(scene)->plan.cancels[0].request.text == "j7-x");
  scene.settings.api.max_active_requests = 100;
  CHECK(scene.round().size() == 1);
  CHECK(ask_in(scene)->plan.cancels.empty());
  scene.end_job(7);
  for (const std::string& text : scene.round()) CHECK(text.find("resubmit") == std::string::npos);
}

TEST_CASE("resubmit: renewals are no failures") {
  Scene scene;
  scene.set().retry.limit = 2;
  scene.waiting_job(7, "a-0");
  ResizeRequest& failed = scene.asked(7, "a-0", RequestState::Failed);
  failed.description = request_description(7, names_in("a-0"), {.attempt = 4, .renewed = 3});
  failed.error = ProviderError{.code = "LIMIT_EXCEEDED",
                               .message =
                                   "could not provision queued instances in the allocated "
                                   "time"};
  CHECK(scene.rounds(2).empty());
  CHECK(scene.round(Seconds{60}) == Texts{"failed_request ask a-0 job=7"});
  CHECK(ask_in(scene)->plan.groups[0].requests[0].way.attempt == 5);
}

TEST_CASE("on_stockout: after each wait the next entry is tried, the old request is kept") {
  Scene scene;
  scene.set().on_stockout = {{.wait = Seconds{600}, .zones = {"us-central1-f"}},
                             {.wait = Seconds{600}, .mode = Mode::Individual}};
  scene.waiting_job(7, "a-[0-1]");
  scene.asked(7, "a-[0-1]");
  CHECK(scene.rounds(3).empty());
  CHECK(scene.round(Seconds{600}) == Texts{"on_stockout ask a-[0-1] job=7"});
  const AskForNodes* ask = ask_in(scene);
  REQUIRE(ask->plan.groups.size() == 1);
  CHECK(ask->plan.groups[0].spec.name.text == "hpc-a-s1");
  CHECK(ask->plan.groups[0].spec.zones == std::vector<std::string>{"us-central1-f"});
  asked_in(scene, "hpc-a-s1", 7, "a-[0-1]", {.step = 1});
  CHECK(scene.round() == Texts{"surplus_request cancel_request a-[0-1] @hpc-a/j7-x job=7"});
  scene.no_vms();
  scene.owned().requests.clear();
  CHECK(scene.rounds(2).empty());
  CHECK(scene.round(Seconds{600}) == Texts{"on_stockout ask a-[0-1] job=7"});
  CHECK(ask_in(scene)->plan.groups[0].spec.kind == GroupKind::Individual);
}

TEST_CASE("on_stockout: what was refused is asked for again, and nothing after the last") {
  Scene scene;
  scene.set().on_stockout = {{.wait = Seconds{600}, .mode = Mode::BulkInsert}};
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0");
  CHECK(scene.round(Seconds{600}) == Texts{"on_stockout ask a-0 job=7"});
  scene.memory.retries[{"a-0"}].next = scene.shot.now + Seconds{60};
  CHECK(scene.round().empty());
  CHECK(scene.round(Seconds{60}) == Texts{"on_stockout ask a-0 job=7"});
  scene.shot.is_bulk_under_way = true;
  CHECK(scene.round().empty());
}

TEST_CASE("on_stockout: counts from the request, not while nothing is asked for") {
  Scene scene;
  scene.settings.api.max_active_requests = 1;
  scene.set().on_stockout = {{.wait = Seconds{60}, .zones = {"us-central1-f"}}};
  scene.waiting_job(9, "a-1").start_time = scene.shot.now - Seconds{1000};
  scene.asked(9, "a-1", RequestState::Creating);
  scene.waiting_job(7, "a-0").start_time = scene.shot.now;
  CHECK(scene.rounds(10).empty());
  CHECK(scene.memory.stockouts.at("a job 7").step == 0);
  // There is room: the first way is tried, for its whole time.
  scene.end_job(9);
  scene.state("a-1", kOff);
  scene.owned().requests.clear();
  scene.no_vms();
  CHECK(scene.round() == Texts{"unrequested_node ask a-0 job=7"});
  scene.settings.api.max_active_requests = 9;
  scene.asked(7, "a-0").created = scene.shot.now;
  CHECK(scene.rounds(3).empty());
  CHECK(scene.round() == Texts{"on_stockout ask a-0 job=7"});
}

TEST_CASE("on_stockout: not for a node that has its VM, nor for nobody") {
  Scene scene;
  scene.set().on_stockout = {{.wait = Seconds{1}, .zones = {"us-central1-f"}}};
  scene.running_job(7, "a-0");
  scene.vms("a-0");
  scene.state("a-1", kComing);
  scene.asked(0, "a-1");
  CHECK(scene.rounds(3, Seconds{100}).empty());
  CHECK(scene.memory.stockouts.empty());
}

TEST_CASE("on_stockout: from one by one to one by one, elsewhere; the old places are given up") {
  Scene scene;
  scene.set().mode = Mode::Individual;
  scene.set().on_stockout = {{.wait = Seconds{600}, .zones = {"us-central1-f"}}};
  scene.waiting_job(7, "a-[0-1]");
  alone_in(scene, "a-[0-1]");
  CHECK(scene.rounds(2).empty());
  CHECK(scene.round(Seconds{600}) == Texts{"on_stockout ask a-[0-1] job=7"});
  const GroupPlan& planned = ask_in(scene)->plan.groups.at(0);
  CHECK(planned.spec.name.text == "hpc-a-s1");
  CHECK(planned.spec.description ==
        "slurm-flex-start cluster=hpc nodeset=a kind=individual step=1");
  alone_in(scene, "a-[0-1]", "hpc-a-s1", 1);
  CHECK(scene.round() == Texts{"surplus_request delete_instances a-[0-1] @hpc-a"});
  scene.no_vms();
  CHECK(scene.rounds(3).empty());
}

TEST_CASE("on_stockout: from one by one to a request, which then keeps its place") {
  Scene scene;
  scene.set().mode = Mode::Individual;
  scene.set().on_stockout = {{.wait = Seconds{600}, .mode = Mode::Queued}};
  scene.waiting_job(7, "a-[0-1]");
  alone_in(scene, "a-[0-1]");
  scene.rounds(2);
  CHECK(scene.round(Seconds{600}) == Texts{"on_stockout ask a-[0-1] job=7"});
  asked_in(scene, "hpc-a-s1", 7, "a-[0-1]", {.step = 1});
  CHECK(scene.round() == Texts{"surplus_request delete_instances a-[0-1] @hpc-a"});
  scene.no_vms();
  CHECK(scene.rounds(3).empty());
}

TEST_CASE("on_stockout: comes before a job is given back for requests that fail") {
  Scene scene;
  scene.set().retry.limit = 1;
  scene.set().on_stockout = {{.wait = Seconds{600}, .zones = {"us-central1-f"}}};
  scene.waiting_job(7, "a-0");
  ResizeRequest& failed = scene.asked(7, "a-0", RequestState::Failed);
  failed.error = ProviderError{.code = "ZONE_RESOURCE_POOL_EXHAUSTED", .message = "full"};
  scene.rounds(2);
  // It is tried once more where it was, meanwhile.
  CHECK(scene.round(Seconds{60}) == Texts{"failed_request ask a-0 job=7"});
  CHECK(scene.round(Seconds{600}) == Texts{"on_stockout ask a-0 job=7"});
  CHECK(ask_in(scene)->plan.groups[0].spec.name.text == "hpc-a-s1");
}

TEST_CASE("resubmit: a request with a node of no nodeset is left alone") {
  Scene scene;
  scene.set().resubmit_after = Seconds{60};
  scene.waiting_job(7, "a-[0-1]");
  ResizeRequest& request = scene.asked(7, "a-[0-1]");
  request.nodes.push_back({"gone-0"});
  for (int i = 0; i < 3; ++i)
    for (const std::string& text : scene.round(Seconds{100}))
      CHECK(text.find("resubmit") == std::string::npos);
}

TEST_CASE("individual: what waits in the queue is not asked for again") {
  Scene scene;
  scene.set().mode = Mode::Individual;
  scene.waiting_job(7, "a-[0-1]");
  SweptGroup& home = alone_in(scene, "a-[0-1]");
  home.instances[0].last_error = ProviderError{.code = "ZONE_RESOURCE_POOL_EXHAUSTED"};
  CHECK(scene.rounds(3).empty());
  CHECK(scene.memory.retries.empty());
  home.instances.pop_back();
  scene.round();
  CHECK(scene.round() == Texts{"unrequested_node ask a-1 job=7"});
}

TEST_CASE("individual: the job is told that it waits, and why") {
  Scene scene;
  scene.set().mode = Mode::Individual;
  scene.waiting_job(7, "a-[0-1]").start_time = scene.shot.now;
  SweptGroup& home = alone_in(scene, "a-[0-1]");
  for (Instance& entry : home.instances)
    entry.last_error =
        ProviderError{.code = "QUOTA_EXCEEDED", .message = "Quota 'X_GPUS' exceeded. Limit: 8"};
  scene.raw_round();
  CHECK(scene.comment(7).find("waiting for 2 VMs in us-central1 since") != std::string::npos);
  CHECK(scene.comment(7).find("X_GPUS") != std::string::npos);
}

TEST_CASE("individual: a cancelled job's nodes go back, and with them its place in the queue") {
  Scene scene;
  scene.set().mode = Mode::Individual;
  scene.state("a-[0-1]", kComing);
  alone_in(scene, "a-[0-1]");
  CHECK(scene.rounds(2).empty());
  CHECK(scene.round(Seconds{180}) == Texts{"stale_request POWER_DOWN_FORCE a-[0-1]"});
  scene.state("a-[0-1]", kOff);
  scene.rounds(2);
  CHECK(scene.round(Seconds{180}) == Texts{"orphan_instance delete_instances a-[0-1] @hpc-a"});
}

TEST_CASE("individual: an error that will not pass gives the job back") {
  Scene scene;
  scene.set().mode = Mode::Individual;
  scene.waiting_job(7, "a-[0-1]");
  SweptGroup& home = alone_in(scene, "a-[0-1]");
  home.instances[1].last_error =
      ProviderError{.code = "INVALID_ARGUMENT", .message = "no such network"};
  CHECK(scene.round().empty());
  CHECK(scene.round() == Texts{"failed_request give_job_back a-[0-1] job=7"});
}

TEST_CASE("individual: after provision_timeout the VMs that did come go, too") {
  Scene scene;
  scene.set().mode = Mode::Individual;
  scene.set().provision_timeout = Seconds{600};
  scene.waiting_job(7, "a-[0-2]");
  scene.state("a-0", kBusy);
  alone_in(scene, "a-[1-2]");
  scene.vms("a-0");
  scene.owned().group.kind = GroupKind::Individual;
  CHECK(scene.rounds(2).empty());
  CHECK(scene.round(Seconds{600}) == Texts{"provision_timeout comment job=7",
                                           "provision_timeout requeue a-[0-2] job=7",
                                           "provision_timeout POWER_DOWN_FORCE a-[0-2]"});
}

TEST_CASE("bulk_insert: while one is under way its nodes are not asked for again") {
  Scene scene;
  scene.set().mode = Mode::BulkInsert;
  scene.waiting_job(7, "a-0");
  scene.shot.is_bulk_under_way = true;
  CHECK(scene.rounds(4).empty());
  // It may be anybody's.
  CHECK(scene.round(Seconds{600}) == Texts{"unrequested_node ask a-0 job=7"});
}

TEST_CASE("bulk_insert: a VM of no group is an orphan like any other") {
  Scene scene;
  scene.set().mode = Mode::BulkInsert;
  SweptGroup& loose = scene.shot.groups.emplace_back();
  loose.group = loose_group("hpc", "a");
  loose.nodeset = "a";
  loose.instances = {running({"a-0"})};
  scene.rounds(2);
  CHECK(scene.round(Seconds{180}) == Texts{"orphan_instance delete_instances a-0"});
}

TEST_CASE("unused_policy: goes when its group is gone, after the grace") {
  Scene scene;
  scene.settings.sweeper.empty_mig_grace = Seconds{600};
  scene.shot.policies = {{.name = "hpc-a-j7"}, {.name = "hpc-a-j8"}};
  scene.waiting_job(8, "a-0");
  scene.owned("hpc-a-j8").group.description += " job=8";
  scene.owned("hpc-a-j8").group.policy = "hpc-a-j8";
  asked_in(scene, "hpc-a-j8", 8, "a-0", {});
  CHECK(scene.rounds(2).empty());
  CHECK(scene.round(Seconds{590}) == Texts{"unused_policy delete_policy @hpc-a-j7"});
}

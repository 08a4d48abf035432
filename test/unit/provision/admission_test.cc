// SPDX-License-Identifier: GPL-2.0-or-later
// Who may ask for what now: the request quota, max_nodes, jobs over several requests, replacements.
#include "lib/provision/admission.h"

#include "test/support/builders.h"
#include "test/support/catch.h"

#include <string>
#include <vector>

using namespace flex;
using namespace flex::test;

namespace {

using enum AdmissionVerdict;
using Verdicts = std::vector<AdmissionVerdict>;

constexpr TimePoint kNoon{Seconds{1'800'000'000}};

std::set<NodeName> names(const std::string& prefix, int count, int first = 0) {
  const std::vector<NodeName> list = nodes(prefix, count, first);
  return {list.begin(), list.end()};
}

/// A job that has waited for `seconds` and needs so many requests.
PendingAsk ask(JobId job, int seconds, std::size_t requests = 1) {
  return {.job = job,
          .first = {"n-" + std::to_string(job)},
          .since = kNoon - Seconds{seconds},
          .requests = requests};
}

/// The same with nodes of nodeset 0, which has max_nodes.
PendingAsk ask_for(JobId job, int seconds, int count, int first) {
  PendingAsk made = ask(job, seconds);
  made.nodes[0] = names("a", count, first);
  made.whole = made.nodes;
  return made;
}

/// Only the request quota counts.
AdmissionLimits quota(std::size_t most, std::size_t active, RequestQuota known = {}) {
  return {.region = "us-central1", .most = most, .active = active, .quota = known};
}

/// Nodeset 0 with max_nodes, of which some are in use; requests are no matter.
AdmissionLimits room(std::size_t max_nodes, std::set<NodeName> used, std::set<NodeName> kept = {}) {
  AdmissionLimits limits = quota(100, 0);
  limits.nodesets[0] = {
      .name = "a", .max_nodes = max_nodes, .used = std::move(used), .kept = std::move(kept)};
  return limits;
}

Verdicts verdicts(const std::vector<PendingAsk>& asks, const AdmissionLimits& limits) {
  Verdicts all;
  for (const Admission& admission : admit_requests(asks, limits)) all.push_back(admission.verdict);
  return all;
}

std::string why(const PendingAsk& one, const AdmissionLimits& limits) {
  return admit_requests({one}, limits).front().why;
}

}  // namespace

TEST_CASE("admission: room is what the config allows beside the active ones", "[provision]") {
  CHECK(room_for_requests(100, {}, 0) == 100);
  CHECK(room_for_requests(100, {}, 98) == 2);
  CHECK(room_for_requests(100, {}, 120) == 0);
}

TEST_CASE("admission: where Google was full, as many as became free, or one to find out",
          "[provision]") {
  const RequestQuota known{.limit = 10, .probes = 1};
  CHECK(room_for_requests(100, known, 10) == 1);
  CHECK(room_for_requests(100, known, 7) == 3);
  CHECK(room_for_requests(8, known, 7) == 1);
}

TEST_CASE("admission: a refusal is learned, and found out to be over step by step", "[provision]") {
  RequestQuota known;
  learn(known, {.active = 5, .taken = 2, .refused = 3, .now = kNoon}, 100);
  CHECK(known.limit == 7);
  CHECK(known.probes == 1);
  CHECK(known.learned == kNoon);
  learn(known, {.active = 7, .taken = 1}, 100);
  CHECK(known.limit == 8);
  CHECK(known.probes == 2);
  learn(known, {.active = 8}, 100);
  CHECK(known.probes == 2);
  learn(known, {.active = 8, .taken = 1, .refused = 1}, 100);
  CHECK(known.limit == 9);
  CHECK(known.probes == 1);
  learn(known, {.active = 6, .taken = 3}, 100);
  CHECK(known.probes == 1);
  for (std::size_t i = 0; i < 7; ++i) learn(known, {.active = 9 + i, .taken = 1}, 100);
  CHECK(known.limit == 0);
  learn(known, {.active = 0, .taken = 0, .refused = 1}, 100);
  CHECK(known.limit == 1);
}

TEST_CASE("admission: what was learned ages", "[provision]") {
  RequestQuota known{.limit = 10, .probes = 1, .learned = kNoon};
  forget_old(known, kNoon + Seconds{899});
  CHECK(known.limit == 10);
  forget_old(known, kNoon + Seconds{900});
  CHECK(known.limit == 0);
  CHECK(known.probes == 1);
}

TEST_CASE("admission: longest waiting first, whatever order they come in", "[provision]") {
  CHECK(verdicts({ask(3, 10), ask(1, 30), ask(2, 20)}, quota(2, 0)) == Verdicts{Wait, Ask, Ask});
  // Of those that came at the same time the first job.
  CHECK(verdicts({ask(2, 30), ask(1, 30)}, quota(1, 0)) == Verdicts{Wait, Ask});
}

TEST_CASE("admission: who waits is told why, and how many are before it", "[provision]") {
  const auto all = admit_requests({ask(1, 30), ask(2, 20), ask(3, 10)}, quota(2, 1));
  CHECK(all[0].verdict == Ask);
  CHECK(all[1].waits_for_request);
  CHECK(all[1].why == "2 of 2 requests of region us-central1 are in use");
  CHECK(all[1].before == 0);
  CHECK(all[2].before == 1);
  CHECK(why(ask(1, 1), {.region = "r", .most = 9, .waiting = 7}) ==
        "7 wait for their turn already");
}

TEST_CASE("admission: past those who wait elsewhere nothing is asked for", "[provision]") {
  AdmissionLimits limits = quota(100, 0);
  limits.waiting = 1;
  CHECK(verdicts({ask(1, 30)}, limits) == Verdicts{Wait});
  // VMs that come without a request need no room there.
  CHECK(verdicts({ask(1, 30, 0)}, limits) == Verdicts{Ask});
}

TEST_CASE("admission: a smaller one does not pass the first", "[provision]") {
  CHECK(verdicts({ask(1, 30, 2), ask(2, 20, 1)}, quota(2, 1)) == Verdicts{Wait, Wait});
  CHECK_THAT(why(ask(1, 30, 2), quota(2, 1)),
             ContainsSubstring("its 2 requests are asked for together"));
}

TEST_CASE("admission: one that needs more than there ever is begins when it is alone",
          "[provision]") {
  CHECK(verdicts({ask(1, 30, 3)}, quota(2, 1)) == Verdicts{Wait});
  CHECK(verdicts({ask(1, 30, 3), ask(2, 20)}, quota(2, 0)) == Verdicts{Ask, Wait});
}

TEST_CASE(
    "admission: one that Google refuses though it is alone holds up nobody, and is seldom tried",
    "[provision]") {
  AdmissionLimits limits = quota(2, 0, {.limit = 2, .probes = 1, .learned = kNoon});
  limits.probe_pause = Seconds{60};
  limits.now = kNoon + Seconds{15};
  const std::vector<PendingAsk> asks = {ask(1, 30, 3), ask(2, 20), ask(3, 10, 2)};
  CHECK(verdicts(asks, limits) == Verdicts{Wait, Ask, Wait});
  CHECK_THAT(why(ask(1, 30, 3), limits),
             ContainsSubstring("its 3 requests are asked for together"));
  // It has its turn when they are gone.
  limits.active = 1;
  CHECK(verdicts(asks, limits) == Verdicts{Wait, Wait, Wait});
  limits.active = 0;
  limits.now = kNoon + Seconds{239};
  CHECK(verdicts(asks, limits) == Verdicts{Wait, Ask, Wait});
  limits.now = kNoon + Seconds{240};
  CHECK(verdicts(asks, limits) == Verdicts{Ask, Wait, Wait});
}

TEST_CASE("admission: one that has no request comes before one that has", "[provision]") {
  PendingAsk extra = ask(1, 90);
  extra.is_extra = true;
  CHECK(verdicts({extra, ask(2, 10)}, quota(1, 0)) == Verdicts{Wait, Ask});
}

TEST_CASE("admission: what replaces a request takes its slot where there is no other",
          "[provision]") {
  PendingAsk step = ask(1, 90);
  step.is_extra = true;
  step.replaces = 1;
  CHECK(verdicts({step}, quota(5, 4)) == Verdicts{Ask});
  CHECK(verdicts({step}, quota(5, 5)) == Verdicts{Replace});
  // Those before it wait for a slot that it does not take from them.
  CHECK(verdicts({step, ask(2, 10)}, quota(5, 5)) == Verdicts{Replace, Wait});
  CHECK(verdicts({step, ask(2, 10)}, quota(6, 5)) == Verdicts{Replace, Ask});
  // Nor does Google's own limit matter.
  CHECK(verdicts({step, ask(2, 10)}, quota(100, 5, {.limit = 5})) == Verdicts{Replace, Ask});
  AdmissionLimits others = quota(100, 5);
  others.waiting = 3;
  CHECK(verdicts({step}, others) == Verdicts{Replace});
}

TEST_CASE("admission: a hundred steps at once need no slot", "[provision]") {
  std::vector<PendingAsk> steps;
  for (JobId job = 1; job <= 100; ++job) {
    steps.push_back(ask(job, 90));
    steps.back().is_extra = true;
    steps.back().replaces = 1;
  }
  CHECK(verdicts(steps, quota(100, 100)) == Verdicts(100, Replace));
}

TEST_CASE("admission: two requests in the place of one need one slot more", "[provision]") {
  PendingAsk step = ask(1, 90, 2);
  step.is_extra = true;
  step.replaces = 1;
  CHECK(verdicts({step}, quota(5, 5)) == Verdicts{Wait});
  CHECK(verdicts({step}, quota(5, 4)) == Verdicts{Replace});
  CHECK(verdicts({step}, quota(5, 3)) == Verdicts{Ask});
  CHECK(verdicts({step, ask(2, 10)}, quota(5, 4)) == Verdicts{Wait, Ask});
}

TEST_CASE("admission: all that the first in line needs is the probe", "[provision]") {
  const RequestQuota full{.limit = 5, .probes = 1};
  const auto all = admit_requests({ask(1, 30, 2), ask(2, 20)}, quota(100, 5, full));
  CHECK(all[0].verdict == Ask);
  CHECK(all[0].is_try);
  CHECK(all[1].verdict == Wait);
  CHECK_THAT(all[1].why, ContainsSubstring("Google takes no more requests in region us-central1"));
  // Also where one has become free.
  CHECK(verdicts({ask(1, 30, 2)}, quota(100, 4, full)) == Verdicts{Ask});
  // Not more than the config says, and nobody but the first.
  CHECK(verdicts({ask(1, 30, 2)}, quota(6, 5, full)) == Verdicts{Wait});
  CHECK(verdicts({ask(1, 30, 1), ask(2, 20, 2)}, quota(100, 5, full)) == Verdicts{Ask, Wait});
}

TEST_CASE("admission: several are not tried again right after a refusal", "[provision]") {
  AdmissionLimits limits = quota(100, 5, {.limit = 5, .probes = 1, .learned = kNoon});
  limits.probe_pause = Seconds{60};
  limits.now = kNoon + Seconds{59};
  CHECK(verdicts({ask(1, 30, 2)}, limits) == Verdicts{Wait});
  CHECK(verdicts({ask(1, 30, 1)}, limits) == Verdicts{Ask});
  limits.now = kNoon + Seconds{60};
  CHECK(verdicts({ask(1, 30, 2)}, limits) == Verdicts{Ask});
}

TEST_CASE("admission: what there is room for is no try", "[provision]") {
  const auto all = admit_requests({ask(1, 30)}, quota(100, 4, {.limit = 5}));
  CHECK(all[0].verdict == Ask);
  CHECK_FALSE(all[0].is_try);
}

TEST_CASE("admission: max_nodes is a queue", "[provision]") {
  // There would be room for job 3, but job 2 was there first.
  const auto all = admit_requests(
      {ask_for(1, 30, 2, 0), ask_for(2, 20, 2, 2), ask_for(3, 10, 1, 4)}, room(3, {}));
  CHECK(all[0].verdict == Ask);
  CHECK(all[1].verdict == Wait);
  CHECK(all[1].full == std::set<std::size_t>{0});
  CHECK(all[1].why == "nodeset a is at its max_nodes 3");
  CHECK(all[2].verdict == Wait);
  CHECK(all[2].before == 1);
}

TEST_CASE("admission: who waits for a nodeset elsewhere is not passed", "[provision]") {
  AdmissionLimits limits = room(4, {});
  limits.nodesets[0].waiting = 1;
  CHECK(verdicts({ask_for(1, 30, 1, 0), ask(2, 20)}, limits) == Verdicts{Wait, Ask});
}

TEST_CASE("admission: nodes that are counted already need no room", "[provision]") {
  PendingAsk step = ask_for(1, 90, 2, 0);
  step.is_extra = true;
  // Job 2 waits for room: the step of job 1 is no matter of the queue.
  CHECK(verdicts({step, ask_for(2, 20, 2, 2)}, room(3, names("a", 2))) == Verdicts{Ask, Wait});
  AdmissionLimits limits = room(2, names("a", 2));
  limits.nodesets[0].waiting = 4;
  CHECK(verdicts({step}, limits) == Verdicts{Ask});
}

TEST_CASE("admission: the last node that fits", "[provision]") {
  CHECK(verdicts({ask_for(1, 30, 2, 2)}, room(4, names("a", 2))) == Verdicts{Ask});
  CHECK(verdicts({ask_for(1, 30, 3, 2)}, room(4, names("a", 2))) == Verdicts{Wait});
  // A node that two ask for counts once.
  CHECK(verdicts({ask_for(1, 30, 2, 2), ask_for(2, 20, 1, 3)}, room(4, names("a", 2))) ==
        Verdicts{Ask, Ask});
}

TEST_CASE("admission: a job that never fits is told so, and nobody stands behind it",
          "[provision]") {
  const auto all = admit_requests({ask_for(1, 30, 3, 2), ask_for(2, 20, 2, 2)},
                                  room(4, names("a", 2), names("a", 2)));
  CHECK(all[0].verdict == Never);
  CHECK(all[0].why ==
        "3 nodes are wanted of nodeset a beside 2 of its static nodes, whose max_nodes is 4");
  CHECK(all[1].verdict == Ask);
  CHECK(why(ask_for(1, 30, 5, 0), room(4, {})) ==
        "5 nodes are wanted of nodeset a, whose max_nodes is 4");
}

TEST_CASE("admission: static nodes that the job has itself are no others", "[provision]") {
  PendingAsk job = ask_for(1, 30, 2, 2);
  job.whole[0] = names("a", 4);
  std::set<NodeName> used = names("a", 2);
  used.insert({"a-9"});
  CHECK(verdicts({job}, room(4, used, names("a", 2))) == Verdicts{Wait});
  // Nodes without a job are never impossible.
  PendingAsk jobless = ask_for(0, 30, 3, 2);
  CHECK(verdicts({jobless}, room(4, names("a", 2), names("a", 2))) == Verdicts{Wait});
}

TEST_CASE("admission: what fits now is asked for, whatever static nodes want later",
          "[provision]") {
  CHECK(verdicts({ask_for(1, 30, 3, 2)}, room(4, {}, names("a", 2))) == Verdicts{Ask});
}

TEST_CASE("admission: a job over two nodesets waits for both, and nobody passes it",
          "[provision]") {
  AdmissionLimits limits = room(2, names("a", 1));
  limits.nodesets[1] = {.name = "b", .max_nodes = 2, .used = {}, .kept = {}};
  PendingAsk both = ask_for(1, 30, 2, 2);
  both.nodes[1] = names("b", 2);
  PendingAsk small = ask(2, 20);
  small.nodes[1] = names("b", 1, 5);
  CHECK(verdicts({both, small}, limits) == Verdicts{Wait, Wait});
  limits.nodesets[0].used.clear();
  CHECK(verdicts({both, small}, limits) == Verdicts{Ask, Wait});
}

TEST_CASE("admission: who waits for a nodeset does not hold up the others' requests",
          "[provision]") {
  AdmissionLimits limits = room(2, names("a", 2));
  limits.most = 1;
  CHECK(verdicts({ask_for(1, 30, 1, 3), ask(2, 20)}, limits) == Verdicts{Wait, Ask});
}

TEST_CASE("admission: who waits for a request keeps its place in the nodeset", "[provision]") {
  AdmissionLimits limits = room(2, {});
  limits.most = 1;
  limits.active = 1;
  PendingAsk direct = ask_for(2, 20, 2, 4);
  direct.requests = 0;
  CHECK(verdicts({ask_for(1, 30, 1, 3), direct}, limits) == Verdicts{Wait, Wait});
}

TEST_CASE("admission: one that is not ready is not asked for and holds up nobody", "[provision]") {
  PendingAsk later = ask_for(1, 30, 2, 2);
  later.is_ready = false;
  const auto all = admit_requests({later, ask_for(2, 20, 1, 4)}, room(3, names("a", 2)));
  CHECK(all[0].verdict == Wait);
  // But flex-resume, which knows neither, leaves what needs room to the sweeper.
  CHECK(all[0].full == std::set<std::size_t>{0});
  CHECK(all[1].verdict == Ask);
}

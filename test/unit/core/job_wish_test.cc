// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/job_wish.h"

#include "test/support/catch.h"

#include <string>

using namespace flex;
using namespace std::chrono_literals;

TEST_CASE("parse_wish: a token anywhere in a comment", "[core]") {
  const auto text = GENERATE(as<std::string>{},
                             "flex(run=4h,wait=30m,ontimeout=hold)",
                             "my run flex(run=4h,wait=30m,ontimeout=hold)",
                             "flex(run=4h,wait=30m,ontimeout=hold) of Monday",
                             "flex( run = 4h , wait=30:00 ,ontimeout=hold, )",
                             "a;flex(run=240,wait=30);flex(ontimeout=hold)",
                             "flex(run=1h,wait=30m) then flex(run=0-4,ontimeout=hold)");
  INFO(text);
  const JobWish wish = parse_wish(text);
  CHECK(wish.run == 4h);
  CHECK(wish.wait == 30min);
  CHECK(wish.on_timeout == OnTimeout::Hold);
  CHECK(wish.problems.empty());
}

TEST_CASE("parse_wish: other people's words are none", "[core]") {
  const auto text = GENERATE(as<std::string>{},
                             "",
                             "flex",
                             "flex()",
                             "reflex(run=4h)",
                             "my-flex(run=4h)",
                             "flex(run=4h",
                             "flex (run=4h)",
                             "Flex(run=4h)");
  INFO(text);
  const JobWish wish = parse_wish(text);
  CHECK(wish.is_empty());
  CHECK(wish.problems.empty());
}

TEST_CASE("parse_wish: what is not understood is said, the rest counts", "[core]") {
  const JobWish wish = parse_wish("flex(run=8d,wait=30m,ontimeout=later,walk=4h)");
  CHECK(!wish.run);
  CHECK(wish.wait == 30min);
  CHECK(!wish.on_timeout);
  CHECK(wish.problems ==
        std::vector<std::string>{"run=8d: too long, VMs live from 10m to 7d",
                                 "ontimeout=later: write requeue, hold or cancel",
                                 "walk: not known; write flex(run=4h,wait=30m,ontimeout=hold)"});
}

TEST_CASE("parse_run: bad values are refused in one sentence", "[core]") {
  const auto value = GENERATE(as<std::string>{},
                              "",
                              "0",
                              "9",
                              "-1",
                              "8d",
                              "abc",
                              "2147483648",
                              "7-00:00:01",
                              "1h30",
                              std::string(10'000, '9'),
                              std::string(10'000, 'x'),
                              "4h\n5h");
  const auto run = parse_run("--flex-run-duration", value);
  REQUIRE(!run);
  CHECK(run.error().what.starts_with("--flex-run-duration="));
  CHECK(run.error().what.find("VMs live from 10m to 7d") != std::string::npos);
  CHECK(run.error().what.find('\n') == std::string::npos);
  CHECK(run.error().what.size() < 200);
}

TEST_CASE("parse_run: the limits are allowed, and the site's own are kept", "[core]") {
  CHECK(*parse_run("run", "10") == 10min);
  CHECK(*parse_run("run", "10m") == 10min);
  CHECK(*parse_run("run", "7d") == 7 * 24h);
  CHECK(*parse_run("run", "7-0") == 7 * 24h);
  CHECK(!parse_run("run", "2d", 24h));
  CHECK(*parse_wait("wait", "1s") == 1s);
  CHECK(!parse_wait("wait", "0"));
}

TEST_CASE("with_wish: the rest of the comment is as it was", "[core]") {
  const JobWish wish{.run = 4h, .on_timeout = OnTimeout::Cancel};
  CHECK(with_wish("", wish) == "flex(run=4h,ontimeout=cancel)");
  CHECK(with_wish("run  of Monday ", wish) == "run  of Monday  flex(run=4h,ontimeout=cancel)");
  CHECK(with_wish("a flex(run=1h,wait=90s) b", wish) ==
        "a flex(run=4h,wait=90s,ontimeout=cancel) b");
  CHECK(with_wish("flex(run=1h)flex(wait=2h)", wish) == "flex(run=4h,wait=2h,ontimeout=cancel)");
  CHECK(with_wish("a flex(run=1h) b", {}) == "a flex(run=1h) b");
  // One that was never closed does not swallow ours.
  CHECK(parse_wish(with_wish("flex(wait=", wish)).run == 4h);
  CHECK(parse_wish(with_wish("x", wish)).run == 4h);
}

TEST_CASE("wish_of: the comment counts more than --extra", "[core]") {
  Job job;
  job.comment = "flex(run=4h)";
  job.extra = "flex(run=1h,wait=10m)";
  CHECK(wish_of(job).run == 4h);
  CHECK(wish_of(job).wait == 10min);
}

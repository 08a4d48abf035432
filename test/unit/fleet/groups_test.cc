// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/groups.h"

#include "test/support/builders.h"
#include "test/support/catch.h"

using namespace flex;

namespace {

ResizeRequest described(std::string description, const std::string& name = "x") {
  ResizeRequest request;
  request.name = {name};
  request.description = std::move(description);
  return request;
}

}  // namespace

TEST_CASE("request_description: says the job, the nodes and from the second on the attempt",
          "[fleet]") {
  const auto nodes = test::nodes("a3u", 3);
  CHECK(request_description(12, nodes) == "slurm-flex-start job=12 nodes=a3u-[0-2]");
  CHECK(request_description(12, nodes, {.attempt = 1}) == request_description(12, nodes));
  CHECK(request_description(12, nodes, {.attempt = 2}) ==
        "slurm-flex-start job=12 attempt=2 failures=0 nodes=a3u-[0-2]");
  CHECK(request_description(12, nodes, {.attempt = 3, .failures = 1}) ==
        "slurm-flex-start job=12 attempt=3 failures=1 nodes=a3u-[0-2]");
}

TEST_CASE("request_description: what it says is read again", "[fleet]") {
  const auto nodes = test::nodes("a3u", 3);
  const auto request = described(request_description(12, nodes, {.attempt = 7}));
  CHECK(request_job(request) == 12);
  CHECK(request_attempt(request) == 7);
  CHECK(described_nodes(request.description) == nodes);
  CHECK(is_our_request(request));
}

TEST_CASE("request_attempt: is 1 where nothing or nonsense is said", "[fleet]") {
  CHECK(request_attempt(described("")) == 1);
  CHECK(request_attempt(described("slurm-flex-start job=12")) == 1);
  CHECK(request_attempt(described("slurm-flex-start job=12 attempt=")) == 1);
  CHECK(request_attempt(described("slurm-flex-start job=12 attempt=0")) == 1);
  CHECK(request_attempt(described("slurm-flex-start job=12 attempt=-3")) == 1);
  CHECK(request_attempt(described("slurm-flex-start job=12 attempt=99999999999")) == 1);
  CHECK(request_attempt(described("somebody's attempt=4")) == 1);
}

TEST_CASE("request_way: an older version's attempts are failures, but for the renewed ones",
          "[fleet]") {
  const auto failures = [](const std::string& rest) {
    return request_way(described("slurm-flex-start job=12" + rest)).failures;
  };
  CHECK(failures("") == 0);
  CHECK(failures(" attempt=3 nodes=a") == 2);
  CHECK(failures(" attempt=3 renewed=1 nodes=a") == 1);
  CHECK(failures(" attempt=3 renewed=9 nodes=a") == 0);
  CHECK(failures(" attempt=3 failures=0 nodes=a") == 0);
  CHECK(failures(" attempt=3 failures=1 renewed=1 nodes=a") == 1);
  CHECK(failures(" failures=2 nodes=a") == 2);
}

TEST_CASE("is_our_request: by its description, not by its name", "[fleet]") {
  CHECK(is_our_request(described("slurm-flex-start job=0 nodes=n")));
  CHECK_FALSE(is_our_request(described("", "j12-abc")));
  CHECK_FALSE(is_our_request(described("slurm-flex-starter job=1")));
  CHECK_FALSE(is_our_request(described("not slurm-flex-start job=1")));
}

TEST_CASE("run_duration_text: says how the run duration was computed", "[fleet]") {
  using namespace std::chrono_literals;
  NodesetConfig set = test::nodeset("a", test::nodes("a", 1));
  Job job = test::job(7, {{"a-0"}}, 4h);
  const auto text = [&](const Job* of, Mode mode = Mode::Queued) {
    return run_duration_text(set, of, mode);
  };
  CHECK(text(&job) == "TimeLimit 04:00:00 + run_duration_margin 00:15:00");
  CHECK(text(nullptr) == "max_run_duration 7-00:00:00, as no job asks");
  CHECK(text(&job, Mode::Individual) ==
        "max_run_duration 7-00:00:00, as VMs that come one by one live so long");
  job.time_limit = 24h * 8;
  CHECK(text(&job) ==
        "TimeLimit 8-00:00:00 + run_duration_margin 00:15:00, cut to max_run_duration 7-00:00:00");
  job.time_limit = 1min;
  set.run_duration_margin = 0s;
  CHECK(text(&job) ==
        "TimeLimit 00:01:00 + run_duration_margin 00:00:00, raised to Google's least");
  job.time_limit.reset();
  CHECK(text(&job) == "max_run_duration 7-00:00:00, as the job has no TimeLimit");
  job.comment = "flex(run=2h)";
  CHECK(text(&job) == "the job's own run=02:00:00");
  set.dws_flex.max_run_duration = 1h;
  CHECK(text(&job) == "the job's own run=02:00:00, cut to max_run_duration 01:00:00");
  set.dws_flex.use_job_duration = false;
  CHECK(text(&job) == "max_run_duration 01:00:00, as use_job_duration is false");
}

// SPDX-License-Identifier: GPL-2.0-or-later
// The fence of rule lease_end on a real slurmctld, as fast as slurmctld answers:
//   fence-tool swap NODES SWAPS JOB
// The first of the nodes gets another end SWAPS times, each in another bucket; so does the second,
// half as often. The others keep theirs. Each swap is decided and carried out as in a round of the
// sweeper. Prints how many swaps were made; stops, with exit code 1, when the job has started.
//   fence-tool spread NODES SECONDS
// One round in which the VMs end so many seconds after each other. The nodes count as up. Prints
// how many reservations there are then.
#include "lib/slurm/hostlist.h"
#include "lib/slurm/libslurm_scheduler.h"
#include "sweeper/act.h"
#include "sweeper/rules.h"
#include "test/support/builders.h"
#include "test/support/fake_cloud.h"

#include <fmt/format.h>
#include <slurm/slurm.h>

#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

using namespace flex;

namespace {

TimePoint now() {
  return std::chrono::time_point_cast<Seconds>(std::chrono::system_clock::now());
}

int fail(std::size_t swaps, const std::string& why) {
  fmt::print("{} swaps: {}\n", swaps, why);
  return 1;
}

class Swapper {
 public:
  Swapper(Scheduler& scheduler, const std::vector<NodeName>& nodes)
      : scheduler_(scheduler), config_(test::config({test::nodeset("n", nodes)})) {
    SweptGroup& group = shot_.groups.emplace_back();
    group.group = test::group("hpc-n", "hpc", "n");
    group.nodeset = "n";
    for (const NodeName& node : nodes) {
      Instance vm = test::running(node);
      vm.terminates = began_ + std::chrono::hours{8};
      group.instances.push_back(vm);
    }
    shot_.cluster = "hpc";
    shot_.seen_once = {"n"};
  }

  /// One round in which the ends are those of swap `number`.
  Result<Done> swap(std::size_t number) {
    auto& vms = shot_.groups.front().instances;
    vms[0].terminates = began_ + kEnds[number % kEnds.size()];
    if (vms.size() > 1) vms[1].terminates = began_ + kEnds[(number / 2) % kEnds.size()];
    auto listed = scheduler_.load_nodes();
    if (!listed) return listed.error();
    shot_.nodes.items = std::move(*listed);
    return play();
  }

  /// One round in which the VMs end one after the other.
  Result<Done> spread(Seconds step) {
    TimePoint end = began_ + step;
    for (Instance& vm : shot_.groups.front().instances) {
      vm.terminates = std::exchange(end, end + step);
      Node node;
      node.name = vm.name;
      node.state = NODE_STATE_IDLE | NODE_STATE_CLOUD;
      shot_.nodes.items.push_back(node);
    }
    return play();
  }

  [[nodiscard]] std::size_t changes() const { return changes_; }

 private:
  // Each in a bucket of its own, whether buckets are a quarter of an hour or six hours.
  static constexpr std::array<Seconds, 3> kEnds{
      std::chrono::hours{8}, std::chrono::hours{30}, std::chrono::hours{54}};

  Result<Done> play() {
    shot_.now = now();
    shot_.reservations = {};
    if (auto got = scheduler_.refresh_reservations(shot_.reservations); !got) return got.error();
    const Picture picture{config_, shot_};
    Round round{config_, shot_, picture, memory_};
    lease_end(round);
    Actor actor{.config = config_,
                .shot = shot_,
                .cloud = cloud_,
                .scheduler = scheduler_,
                .memory = memory_,
                .log = log_,
                .should_stop = [] { return false; }};
    const ActReport report = act(actor, round.actions);
    if (report.failed + report.again > 0) return Error{ErrorKind::Internal, last_line_};
    changes_ += round.actions.size();
    return Done{};
  }

  Scheduler& scheduler_;
  Config config_;
  TimePoint began_ = now();
  Snapshot shot_{};
  Memory memory_{};
  FakeCloud cloud_{};
  std::string last_line_{};
  Log log_{[this](LogLevel, std::string_view line) { last_line_ = line; }, LogLevel::Warning};
  std::size_t changes_ = 0;
};

int swap_ends(Scheduler& scheduler, Swapper& swapper, std::size_t swaps, JobId job) {
  for (std::size_t made = 0; made < swaps; ++made) {
    if (const auto done = swapper.swap(made); !done) return fail(made, done.error().what);
    const std::array<JobId, 1> ids{job};
    const auto jobs = scheduler.load_jobs(ids);
    if (!jobs) return fail(made, jobs.error().what);
    if (jobs->empty() || !jobs->front().is_pending) return fail(made, "the job has started");
  }
  fmt::print("{} swaps, {} changes: the job waits\n", swaps, swapper.changes());
  return 0;
}

int spread_ends(Scheduler& scheduler, Swapper& swapper, Seconds step) {
  if (const auto done = swapper.spread(step); !done) return fail(0, done.error().what);
  Listed<Reservation> list;
  if (auto got = scheduler.refresh_reservations(list); !got) return fail(0, got.error().what);
  fmt::print("{} reservations\n", list.items.size());
  return 0;
}

std::size_t to_number(const std::string& text) {
  return std::strtoull(text.c_str(), nullptr, 10);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool is_swap = words.size() == 4 && words[0] == "swap";
  if (!is_swap && (words.size() != 3 || words[0] != "spread")) return 2;
  const auto nodes = expand_hostlist(words[1]);
  const auto scheduler = open_libslurm({});
  if (!nodes || !scheduler) return 2;
  Swapper swapper{**scheduler, *nodes};
  if (is_swap)
    return swap_ends(
        **scheduler, swapper, to_number(words[2]), static_cast<JobId>(to_number(words[3])));
  return spread_ends(**scheduler, swapper, Seconds{to_number(words[2])});
}

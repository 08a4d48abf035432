// SPDX-License-Identifier: GPL-2.0-or-later
// The Scheduler as a command, for tests on a real slurmctld:
//   scheduler-tool reservations | partitions
//   scheduler-tool create|update NAME NODES START END    (seconds since 1970)
//   scheduler-tool delete NAME
//   scheduler-tool signal JOB NUMBER
//   scheduler-tool notify JOB TEXT
// Lists are one line each. A failure prints the error's kind and its text; the exit code is 1.
#include "lib/slurm/hostlist.h"
#include "lib/slurm/libslurm_scheduler.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

using namespace flex;

namespace {

using Words = std::vector<std::string>;

long long to_number(const std::string& text) {
  return std::strtoll(text.c_str(), nullptr, 10);
}

TimePoint to_time(const std::string& text) {
  return TimePoint{Seconds{to_number(text)}};
}

Result<Reservation> to_reservation(const Words& words) {
  auto nodes = expand_hostlist(words.at(2));
  if (!nodes) return nodes.error();
  return Reservation{.name = words.at(1),
                     .nodes = std::move(*nodes),
                     .start = to_time(words.at(3)),
                     .end = to_time(words.at(4))};
}

Result<Done> print_reservations(Scheduler& scheduler) {
  Listed<Reservation> list;
  if (auto changed = scheduler.refresh_reservations(list); !changed) return changed.error();
  for (const auto& item : list.items) {
    fmt::print("{} {} {} {} {}{}\n",
               item.name,
               fold_hostlist(item.nodes),
               item.start.time_since_epoch().count(),
               item.end.time_since_epoch().count(),
               item.is_maintenance ? "M" : "",
               item.ignores_jobs ? "I" : "");
  }
  // What has not changed is not sent again.
  auto again = scheduler.refresh_reservations(list);
  if (!again) return again.error();
  fmt::print("again={}\n", *again);
  return Done{};
}

Result<Done> print_partitions(Scheduler& scheduler) {
  auto partitions = scheduler.load_partitions();
  if (!partitions) return partitions.error();
  for (const auto& item : *partitions)
    fmt::print("{} exclusive={}\n", item.name, item.is_exclusive);
  return Done{};
}

Result<Done> run(Scheduler& scheduler, const Words& words) {
  const auto& what = words.at(0);
  if (what == "reservations") return print_reservations(scheduler);
  if (what == "partitions") return print_partitions(scheduler);
  if (what == "delete") return scheduler.delete_reservation(words.at(1));
  const auto job = [&] { return static_cast<JobId>(to_number(words.at(1))); };
  if (what == "signal")
    return scheduler.signal_job(job(), static_cast<int>(to_number(words.at(2))));
  if (what == "notify") return scheduler.notify_job(job(), words.at(2));
  auto reservation = to_reservation(words);
  if (!reservation) return reservation.error();
  return what == "create" ? scheduler.create_reservation(*reservation)
                          : scheduler.update_reservation(*reservation);
}

}  // namespace

int main(int argc, char** argv) {
  auto scheduler = open_libslurm();
  if (!scheduler) {
    fmt::print("{}\n", scheduler.error().what);
    return EXIT_FAILURE;
  }
  const auto done = run(**scheduler, Words(argv + 1, argv + argc));
  if (done) return EXIT_SUCCESS;
  fmt::print("{} {}\n", to_string(done.error().kind), done.error().what);
  return EXIT_FAILURE;
}

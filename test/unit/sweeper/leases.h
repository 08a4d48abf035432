// SPDX-License-Identifier: GPL-2.0-or-later
// A scene for the ends of VMs.
#pragma once

#include "test/support/catch.h"
#include "test/support/scene.h"

#include <chrono>
#include <string>

namespace flex::test {

using namespace std::chrono_literals;

/// A scene whose reservations are as the last round wanted them.
class Leases : public Scene {
 public:
  explicit Leases(int count = 8) : Scene(count) {
    set().lease_warning = 10min;
    start = shot.now;
  }

  TimePoint start{};

  /// Up, with VMs that end so long after the scene's start.
  void up(const std::string& hostlist, Seconds ends) {
    state(hostlist, kIdle);
    vms(hostlist);
    for (const NodeName& name : names_in(hostlist)) entry(name.text).terminates = start + ends;
  }

  /// Up, with VMs whose fence begins so long after the scene's start: 30 s for slurmctld's tick and
  /// 60 s for the epilog before their end.
  void fenced(const std::string& hostlist, Seconds begins) { up(hostlist, begins + 90s); }

  /// A job at work on VMs that end so long after the start; it ends after `length`.
  Job& at_work(JobId id, const std::string& hostlist, Seconds vms_end, Seconds length) {
    up(hostlist, vms_end);
    Job& job = running_job(id, hostlist);
    job.start_time = start;
    job.time_limit = length;
    job.end_time = start + length;
    return job;
  }

  Texts play(Seconds later = 15s) {
    Texts texts = round(later);
    for (const Action& action : actions) carry_out(action);
    return texts;
  }

  const Reservation& there(const std::string& name) {
    for (const Reservation& reservation : shot.reservations.items) {
      if (reservation.name == name) return reservation;
    }
    FAIL("no reservation " << name);
    return shot.reservations.items.front();
  }

  std::string nodes_in(const std::string& name) { return fold_hostlist(there(name).nodes); }

  const WarnJob* warning(JobId id) const {
    for (const Action& action : actions) {
      const auto* warn = std::get_if<WarnJob>(&action.what);
      if (warn != nullptr && warn->job == id) return warn;
    }
    return nullptr;
  }

  void make_partition(const std::string& name, const std::string& hostlist, bool is_exclusive) {
    Partition partition;
    partition.name = name;
    partition.nodes = names_in(hostlist);
    partition.is_exclusive = is_exclusive;
    shot.partitions.items.push_back(partition);
  }

 private:
  void carry_out(const Action& action) {
    auto& all = shot.reservations.items;
    const auto drop = [&](const std::string& name) {
      std::erase_if(all, [&](const Reservation& known) { return known.name == name; });
    };
    if (const auto* gone = std::get_if<DeleteReservation>(&action.what)) drop(gone->name);
    if (const auto* made = std::get_if<SetReservation>(&action.what)) {
      drop(made->reservation.name);
      all.push_back(made->reservation);
    }
    if (const auto* warn = std::get_if<WarnJob>(&action.what)) {
      memory.warned[warn->job] = {.ends = warn->ends, .restart_count = warn->restart_count};
      for (Job& job : shot.jobs.items) {
        if (job.id == warn->job) job.admin_comment = warn->comment;
      }
    }
  }
};

}  // namespace flex::test

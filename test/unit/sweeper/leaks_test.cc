// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/leaks.h"

#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;

namespace {

/// Looks only, as if the rules did nothing.
struct Watch {
  Scene scene{};
  LeakWatch watch{};

  Watch() { scene.settings.sweeper.orphan_grace = Seconds{60}; }

  /// "kind target" of what has leaked after so many looks.
  Texts looks(int count, Seconds later = Seconds{15}) {
    Texts texts;
    for (int i = 0; i < count; ++i) {
      scene.shot.now += later;
      texts.clear();
      for (const Leak& leak : watch.look(scene.settings, scene.shot))
        texts.push_back(leak.kind + " " + leak.target);
    }
    return texts;
  }
};

}  // namespace

TEST_CASE("leaks: a VM that nobody wants, after its grace and eight rounds") {
  Watch watch;
  watch.scene.vms("a-[0-1]");
  watch.scene.state("a-1", kIdle);
  CHECK(watch.looks(13).empty());
  CHECK(watch.looks(1) == Texts{"vm hpc-a/a-0 10"});
  watch.scene.state("a-0", kComing);
  CHECK(watch.looks(1).empty());
  watch.scene.state("a-0", kOff);
  CHECK(watch.looks(13).empty());
}

TEST_CASE("leaks: what waits goes with its request; what waits alone must be deleted") {
  Watch watch;
  watch.scene.owned().instances = {queued({"a-0"}), queued({"a-1"})};
  CHECK(watch.looks(30).empty());
  watch.scene.owned().group.kind = GroupKind::Individual;
  CHECK(watch.looks(14) == Texts{"vm hpc-a/a-0", "vm hpc-a/a-1"});
}

TEST_CASE("leaks: Google has a quarter of an hour more to delete a VM") {
  Watch watch;
  watch.scene.owned().instances.push_back(deleting({"a-0"}));
  CHECK(watch.looks(73).empty());
  CHECK(watch.looks(1) == Texts{"vm hpc-a/a-0"});
}

TEST_CASE("leaks: a request that nobody waits for, or that is long over") {
  Watch watch;
  watch.scene.settings.sweeper.finished_request_grace = Seconds{600};
  watch.scene.waiting_job(7, "a-0");
  watch.scene.asked(7, "a-0");
  watch.scene.asked(8, "a-1");
  watch.scene.asked(9, "a-2", RequestState::Cancelled);
  CHECK(watch.looks(13).empty());
  CHECK(watch.looks(1) == Texts{"request hpc-a/j8-x"});
  CHECK(watch.looks(36) == Texts{"request hpc-a/j8-x", "request hpc-a/j9-x"});
}

TEST_CASE("leaks: an empty group, unless its nodeset is about to need it") {
  Watch watch;
  watch.scene.settings.sweeper.empty_mig_grace = Seconds{120};
  watch.scene.owned();
  watch.scene.waiting_job(7, "a-0");
  CHECK(watch.looks(50).empty());
  watch.scene.end_job(7);
  watch.scene.state("a-0", kOff);
  CHECK(watch.looks(17).empty());
  CHECK(watch.looks(1) == Texts{"group hpc-a"});
}

TEST_CASE("leaks: an empty group beside others that are in use") {
  Watch watch;
  watch.scene.settings.sweeper.empty_mig_grace = Seconds{120};
  watch.scene.running_job(7, "a-0");
  watch.scene.vms("a-0");
  watch.scene.owned("hpc-a-zb");
  watch.scene.owned("hpc-a-j7").group.description += " job=7";
  watch.scene.owned("hpc-a-j6").group.description += " job=6";
  CHECK(watch.looks(17).empty());
  CHECK(watch.looks(1) == Texts{"group hpc-a-zb", "group hpc-a-j6"});
  // A node that comes up may need a lane, but no other job's group.
  watch.scene.waiting_job(8, "a-1");
  CHECK(watch.looks(1) == Texts{"group hpc-a-j6"});
}

TEST_CASE("leaks: a policy that no group uses") {
  Watch watch;
  watch.scene.settings.sweeper.empty_mig_grace = Seconds{60};
  watch.scene.shot.policies.push_back({.name = "hpc-a-j7", .description = "x", .created = {}});
  CHECK(watch.looks(13).empty());
  CHECK(watch.looks(1) == Texts{"policy hpc-a-j7"});
}

TEST_CASE("leaks: a reservation whose VMs are gone") {
  Watch watch;
  Reservation reservation;
  reservation.name = "flex-eol-20270115T0815";
  reservation.nodes = names_in("a-0");
  reservation.is_maintenance = true;
  reservation.ignores_jobs = true;
  watch.scene.shot.reservations.items.push_back(reservation);
  watch.scene.vms("a-0");
  watch.scene.state("a-0", kIdle);
  CHECK(watch.looks(40).empty());
  watch.scene.no_vms();
  watch.scene.shot.groups.clear();
  watch.scene.state("a-0", kOff);
  CHECK(watch.looks(9).empty());
  CHECK(watch.looks(1) == Texts{"reservation flex-eol-20270115T0815"});
}

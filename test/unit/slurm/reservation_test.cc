// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/reservation.h"

#include "test/support/catch.h"

#include <string>

using namespace flex;

namespace {

Reservation some_reservation() {
  return {.name = "flex-eol-20260101T0000",
          .nodes = {{"n-1"}, {"n-0"}},
          .start = TimePoint{Seconds{1000}},
          .end = TimePoint{Seconds{2000}}};
}

}  // namespace

TEST_CASE("reservation: a new one keeps everybody off until its end", "[slurm]") {
  slurm::ReservationMessage message(some_reservation());
  const auto raw = message.to_create();
  CHECK(raw.name == std::string("flex-eol-20260101T0000"));
  CHECK(raw.node_list == std::string("n-[0-1]"));
  CHECK(raw.users == std::string("root"));
  CHECK(raw.start_time == 1000);
  CHECK(raw.end_time == 2000);
  CHECK(raw.flags == (RESERVE_FLAG_MAINT | RESERVE_FLAG_IGN_JOBS | RESERVE_FLAG_PURGE_COMP |
                      RESERVE_FLAG_SPEC_NODES));
}

TEST_CASE("reservation: an update leaves user and flags as they are", "[slurm]") {
  resv_desc_msg_t untouched;
  slurm_init_resv_desc_msg(&untouched);
  slurm::ReservationMessage message(some_reservation());
  auto raw = message.to_update();
  CHECK(raw.node_list == std::string("n-[0-1]"));
  CHECK(raw.start_time == 1000);
  CHECK(raw.end_time == 2000);
  CHECK(raw.users == nullptr);
  CHECK(raw.flags == untouched.flags);
  raw = message.to_update_started();
  CHECK(raw.node_list == std::string("n-[0-1]"));
  CHECK(raw.end_time == 2000);
  CHECK(raw.start_time == untouched.start_time);
}

TEST_CASE("reservation: what slurmctld would take for something else is not sent", "[slurm]") {
  auto reservation = some_reservation();
  SECTION("no nodes") {
    reservation.nodes.clear();
  }
  SECTION("ends before it starts") {
    reservation.end = reservation.start;
  }
  CHECK(slurm::create_reservation(reservation).error().kind == ErrorKind::Invalid);
  CHECK(slurm::update_reservation(reservation).error().kind == ErrorKind::Invalid);
}

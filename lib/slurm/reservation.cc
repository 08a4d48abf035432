// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/reservation.h"

#include "lib/slurm/errors.h"
#include "lib/slurm/handles.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>
#include <slurm/slurm_errno.h>

#include <cerrno>
#include <utility>

namespace flex::slurm {
namespace {

// Somebody must be allowed to use it; root is known to every slurmctld and accounting database.
constexpr const char* kUsers = "root";

constexpr std::uint64_t kFlags =
    RESERVE_FLAG_MAINT | RESERVE_FLAG_IGN_JOBS | RESERVE_FLAG_PURGE_COMP | RESERVE_FLAG_SPEC_NODES;

/// No job ever runs in it, so it would be purged this long after its start; later than its end,
/// because 22.05 leaves purged nodes in state MAINT and lets the end be moved, but not the purging.
constexpr std::chrono::hours kPurge{24};

Result<Done> check(const Reservation& reservation, std::string_view doing) {
  if (reservation.name.empty()) return to_error(ESLURM_RESERVATION_INVALID, doing);
  if (reservation.nodes.empty()) return to_error(ESLURM_RESERVATION_EMPTY, doing);
  if (reservation.end <= reservation.start) return to_error(ESLURM_INVALID_TIME_VALUE, doing);
  return Done{};
}

}  // namespace

ReservationMessage::ReservationMessage(const Reservation& reservation)
    : name_(reservation.name),
      nodes_(fold_hostlist(reservation.nodes)),
      users_(kUsers),
      start_(reservation.start),
      end_(reservation.end) {}

resv_desc_msg_t ReservationMessage::to_create() {
  auto message = to_update();
  message.users = users_.data();
  message.flags = kFlags;
  message.purge_comp_time = static_cast<std::uint32_t>(Seconds{kPurge}.count());
  return message;
}

resv_desc_msg_t ReservationMessage::to_update() {
  auto message = to_update_started();
  message.start_time = start_.time_since_epoch().count();
  return message;
}

resv_desc_msg_t ReservationMessage::to_update_started() {
  resv_desc_msg_t message;
  slurm_init_resv_desc_msg(&message);
  message.name = name_.data();
  message.node_list = nodes_.data();
  message.end_time = end_.time_since_epoch().count();
  return message;
}

Result<Done> create_reservation(const Reservation& reservation) {
  const std::string doing = fmt::format("creating reservation {}", reservation.name);
  if (auto checked = check(reservation, doing); !checked) return checked;
  ReservationMessage message(reservation);
  auto raw = message.to_create();
  errno = 0;
  const ReservationName name{slurm_create_reservation(&raw)};
  return to_result(name ? 0 : -1, doing);
}

Result<Done> update_reservation(const Reservation& reservation) {
  const std::string doing = fmt::format("updating reservation {}", reservation.name);
  if (auto checked = check(reservation, doing); !checked) return checked;
  ReservationMessage message(reservation);
  const auto send = [&](resv_desc_msg_t raw) {
    errno = 0;
    return error_number(slurm_update_reservation(&raw));
  };
  int number = send(message.to_update());
  // Of one that has started the start cannot be changed, not even to what it is.
  if (number == ESLURM_RSV_ALREADY_STARTED) number = send(message.to_update_started());
  return to_result(number, doing);
}

Result<Done> delete_reservation(const std::string& name) {
  std::string text = name;
  reservation_name_msg_t message{};
  message.name = text.data();
  const std::string doing = fmt::format("deleting reservation {}", name);
  errno = 0;
  return to_result(slurm_delete_reservation(&message), doing);
}

}  // namespace flex::slurm

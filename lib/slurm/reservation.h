// SPDX-License-Identifier: GPL-2.0-or-later
// Reservations that keep jobs off nodes from a moment on.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"

#include <slurm/slurm.h>

#include <string>

namespace flex::slurm {

/// slurmctld's message of a reservation; it owns the texts that the message points to.
class ReservationMessage {
 public:
  /// Name, nodes and times: all that an update changes.
  explicit ReservationMessage(const Reservation& reservation);

  /// With the flags and the user, too, which only a new one needs.
  [[nodiscard]] static ReservationMessage for_creation(const Reservation& reservation);

  /// Good until this is moved or gone.
  [[nodiscard]] resv_desc_msg_t raw();

 private:
  std::string name_;
  std::string nodes_;
  std::string users_{};
  TimePoint start_;
  TimePoint end_;
};

/// As in scheduler.h. Invalid without nodes: slurmctld would choose some.
[[nodiscard]] Result<Done> create_reservation(const Reservation& reservation);
[[nodiscard]] Result<Done> update_reservation(const Reservation& reservation);
[[nodiscard]] Result<Done> delete_reservation(const std::string& name);

}  // namespace flex::slurm

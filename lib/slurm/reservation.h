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
  explicit ReservationMessage(const Reservation& reservation);

  /// These are good while this is. A new one has a user and flags.
  [[nodiscard]] resv_desc_msg_t to_create();
  /// Nodes and times.
  [[nodiscard]] resv_desc_msg_t to_update();
  /// Nodes and end: all that can change once it has started.
  [[nodiscard]] resv_desc_msg_t to_update_started();

 private:
  std::string name_;
  std::string nodes_;
  std::string users_;
  TimePoint start_;
  TimePoint end_;
};

/// As in scheduler.h. Invalid without nodes: slurmctld would choose some itself.
[[nodiscard]] Result<Done> create_reservation(const Reservation& reservation);
[[nodiscard]] Result<Done> update_reservation(const Reservation& reservation);
[[nodiscard]] Result<Done> delete_reservation(const std::string& name);

}  // namespace flex::slurm

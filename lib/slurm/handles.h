// SPDX-License-Identifier: GPL-2.0-or-later
// Owners of what libslurm hands out. Raw libslurm pointers live inside lib/slurm, for one function.
#pragma once

#include "lib/slurm/compat.h"

#include <slurm/slurm.h>

#include <cstdlib>
#include <memory>
#include <type_traits>

namespace flex::slurm {

/// A deleter that calls one C function.
template <auto kFree>
struct FreeWith {
  template <class T>
  void operator()(T* raw) const noexcept {
    kFree(raw);
  }
};

// hostlist_t is a pointer up to 23.02 and a struct from 23.11 on; this is right for both.
using RawHostlist = decltype(slurm_hostlist_create(nullptr));
using HostlistPtr =
    std::unique_ptr<std::remove_pointer_t<RawHostlist>, FreeWith<&slurm_hostlist_destroy>>;

/// For what slurm_hostlist_shift returns.
using MallocString = std::unique_ptr<char, FreeWith<&std::free>>;

using NodeInfoPtr = std::unique_ptr<node_info_msg_t, FreeWith<&slurm_free_node_info_msg>>;
using JobInfoPtr = std::unique_ptr<job_info_msg_t, FreeWith<&slurm_free_job_info_msg>>;
using PartitionInfoPtr =
    std::unique_ptr<partition_info_msg_t, FreeWith<&slurm_free_partition_info_msg>>;
using ReservationInfoPtr =
    std::unique_ptr<reserve_info_msg_t, FreeWith<&slurm_free_reservation_info_msg>>;
/// For what slurm_create_reservation returns.
using ReservationName = std::unique_ptr<char, FreeWith<&free_reservation_name>>;
using ConfPtr = std::unique_ptr<slurm_conf_t, FreeWith<&free_conf>>;

}  // namespace flex::slurm

// SPDX-License-Identifier: GPL-2.0-or-later
// Whether a host that slurm.conf names is the one we run on.
#pragma once

#include <string>
#include <string_view>

namespace flex::slurm {

/// "SlurmctldHost=name(address)".
struct ControllerHost {
  std::string name{};
  std::string address{};  ///< a name or a number; the host's name where slurm.conf has none
};

/// True if both name one host: the same, or one of them is the other's short form.
[[nodiscard]] bool is_same_host(std::string_view one, std::string_view other);

/// By its name, or because its address is one of this machine's (loopback is). May ask the resolver
/// for the address.
[[nodiscard]] bool is_this_host(const ControllerHost& host);

}  // namespace flex::slurm

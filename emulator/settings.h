// SPDX-License-Identifier: GPL-2.0-or-later
// What can be set, by file and at run time.
#pragma once

#include "emulator/json.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace flex::emulator {

/// What the API says of a VM that waits for capacity. Google documents PENDING and shows entries
/// without a status; which of the two it answers is not known.
enum class QueuedStatus {
  None,     ///< no status
  Pending,  ///< PENDING
  Mixed,    ///< either, by the VM's name
};

struct Settings {
  double latency_ms = 0;  ///< every API call
  std::map<std::string, double> latency_by_method{};
  double operation_ms = 100;  ///< from the call to the operation's end
  std::map<std::string, double> operation_by_method{};
  double boot_delay_ms = 500;                      ///< from a VM's creation to RUNNING
  std::map<std::string, std::int64_t> capacity{};  ///< VMs per zone; -1 or absent: endless
  std::map<std::string, std::int64_t> quota{{"ACTIVE_RESIZE_REQUESTS", 100}};  ///< per region
  double eta_seconds = 3600;  ///< estimate given when no lease end frees enough
  double boot_failure_probability = 0;
  std::set<std::string> boot_failure_names{};
  bool keep_dead_entries = false;  ///< a VM that ends leaves its entry in the group
  QueuedStatus queued_status = QueuedStatus::Mixed;
  std::vector<std::string> hook{};
  bool strict_tokens = false;
  std::set<std::string> projects{};                           ///< allowed; empty: any
  std::map<std::string, std::vector<std::string>> regions{};  ///< region to its zones
  std::set<std::string> zones_down{};
  std::map<std::string, std::set<std::string>> machine_types{};  ///< by zone; absent: all
  std::set<std::string> denied_permissions{};
  bool lacks_scopes = false;      ///< tokens are for other APIs
  double clock_skew_seconds = 0;  ///< how far its clock is ahead of the machine's
  bool auto_templates = false;
  Json templates = Json::array();
  std::string project = "test-project";  ///< what the metadata server says
  std::string zone = "us-central1-a";
  double token_seconds = 3599;  ///< life of the tokens it gives
  std::uint64_t seed = 1;

  Settings();
};

/// Sets what `change` names; an unknown key or a wrong type is returned as a message and nothing is
/// changed. time_factor is the clock's and is returned in `factor`.
[[nodiscard]] std::optional<std::string> apply_settings(Settings& settings,
                                                        const Json& change,
                                                        std::optional<double>& factor);

[[nodiscard]] Json to_json(const Settings& settings, double factor);

/// Whether a VM of this name is PENDING while it waits. With `mixed` neighbours differ: of a-0 and
/// a-1 one is.
[[nodiscard]] bool says_pending(QueuedStatus status, std::string_view name);

}  // namespace flex::emulator

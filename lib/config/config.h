// SPDX-License-Identifier: GPL-2.0-or-later
// The settings of flex-start.yaml, each default next to its field.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/names.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace flex {

using namespace std::chrono_literals;

/// Google's limits of a Flex Start VM's life.
inline constexpr Seconds kMinRunDuration = 10min;
inline constexpr Seconds kMaxRunDuration = 7 * 24h;

enum class Mode { Queued, Individual, BulkInsert };
enum class MigScope { Nodeset, Job };
enum class OnTimeout { Requeue, Hold };

struct ApiConfig {
  std::string endpoint = "https://compute.googleapis.com";  ///< plain http only for loopback
  std::size_t max_in_flight = 16;
  Seconds call_timeout = 30s;  ///< for one try of one call
  Seconds run_timeout = 120s;  ///< for all that one flex-resume or flex-suspend does
};

struct SweeperConfig {
  Seconds interval = 15s;
  Seconds orphan_grace = 3min;
  Seconds empty_mig_grace = 10min;
  Seconds finished_request_grace = 1h;
  std::size_t max_deletes_per_round = 200;
  std::string state_dir{};  ///< full path; empty: StateSaveLocation/flex-start
  std::string listen = "127.0.0.1:9762";
};

struct DwsFlexConfig {
  bool enabled = true;
  Seconds max_run_duration = kMaxRunDuration;
  bool use_job_duration = true;
  bool use_bulk_insert = false;  ///< the neighbours' spelling of mode: bulk_insert
};

struct PlacementConfig {
  int max_distance = 0;  ///< 1, 2, 3; 0: none asked for
};

/// When a request that failed for want of capacity is made again: after base, 2·base, 4·base, …, at
/// most max.
struct RetryConfig {
  std::size_t limit = 3;  ///< attempts for one job; 0: for ever
  Seconds base = 60s;
  Seconds max = 30min;
};

struct NodesetConfig {
  std::string name{};
  std::vector<NodeName> nodes{};         ///< in the order of the hostlist
  std::vector<NodeName> static_nodes{};  ///< a subset of nodes
  std::string instance_template{};       ///< name, regions/…/instanceTemplates/… or full URL
  std::vector<std::string> zones{};
  Mode mode = Mode::Queued;
  MigScope mig_scope = MigScope::Nodeset;
  DwsFlexConfig dws_flex{};
  Seconds run_duration_margin = 15min;  ///< boot + prolog + KillWait + epilog
  Seconds provision_timeout = 0s;       ///< 0: wait for ever
  OnTimeout on_timeout = OnTimeout::Requeue;
  Seconds boot_timeout = 15min;
  std::size_t max_boot_failures = 3;
  RetryConfig retry{};
  PlacementConfig placement{};
  std::string reservation{};  ///< known only to be refused: Flex Start VMs cannot use one
};

struct Config {
  std::string file{};
  std::string cluster{};  ///< empty: Slurm's ClusterName
  std::string project{};  ///< empty: the metadata server's
  std::string region{};
  ApiConfig api{};
  std::string credentials = "auto";  ///< auto | metadata | path of a key file
  SweeperConfig sweeper{};
  std::vector<NodesetConfig> nodesets{};
  /// Things that are allowed but that the admin should hear about, each with its place.
  std::vector<std::string> warnings{};

  /// Where a node is: which nodeset, the how-manieth of its nodes, and whether it is one of its
  /// static ones. Built by load_config.
  struct Place {
    std::size_t nodeset = 0;
    std::size_t index = 0;
    bool is_static = false;
  };

  std::unordered_map<NodeName, Place> places{};

  [[nodiscard]] const Place* find(const NodeName& node) const {
    const auto found = places.find(node);
    return found == places.end() ? nullptr : &found->second;
  }
};

}  // namespace flex

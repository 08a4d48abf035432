// SPDX-License-Identifier: GPL-2.0-or-later
// The settings of flex-start.yaml, each default next to its field.
#pragma once

#include "lib/config/places.h"
#include "lib/core/domain.h"
#include "lib/core/job_wish.h"
#include "lib/core/names.h"

#include <csignal>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

using namespace std::chrono_literals;

enum class Mode { Queued, Individual, BulkInsert };
enum class MigScope { Nodeset, Job };

/// As flex-start.yaml spells it.
[[nodiscard]] constexpr std::string_view mode_name(Mode mode) {
  switch (mode) {
    case Mode::Queued:
      return "queued";
    case Mode::Individual:
      return "individual";
    case Mode::BulkInsert:
      return "bulk_insert";
  }
  return "unknown";
}

/// The shortest life of a VM that bulkInsert makes.
inline constexpr Seconds kMinBulkDuration = 30s;

struct ApiConfig {
  std::string endpoint = "https://compute.googleapis.com";  ///< plain http only for loopback
  std::size_t max_in_flight = 16;
  /// Google's quota of requests that wait at once in the region: what is beyond it waits here.
  std::size_t max_active_requests = 100;
  Seconds call_timeout = 30s;  ///< for one try of one call
  Seconds run_timeout = 120s;  ///< for all that one flex-resume or flex-suspend does
};

struct SweeperConfig {
  Seconds interval = 15s;
  Seconds orphan_grace = 3min;
  Seconds empty_mig_grace = 10min;
  Seconds finished_request_grace = 1h;
  std::size_t max_deletes_per_round = 200;
  Seconds note_interval = 60s;            ///< a waiting job's comment is written at most this often
  std::string state_dir{};                ///< full path; empty: StateSaveLocation/flex-start
  std::string listen = "127.0.0.1:9762";  ///< or "off"
  std::string listen_token_file{};        ///< full path; needed where others can reach the port
};

struct DwsFlexConfig {
  bool enabled = true;
  Seconds max_run_duration = kMaxRunDuration;
  bool use_job_duration = true;
  bool use_bulk_insert = false;  ///< the neighbours' spelling of mode: bulk_insert
};

struct PlacementConfig {
  int max_distance = 0;                ///< 1, 2, 3; 0: none asked for
  std::string accelerator_topology{};  ///< "4x4"; instead of max_distance

  [[nodiscard]] bool is_wanted() const {
    return max_distance != 0 || !accelerator_topology.empty();
  }
};

/// What to try when there has been no capacity for `wait`: what is not said is as it was.
struct StockoutStep {
  Seconds wait{};
  std::vector<std::string> zones{};
  std::optional<Mode> mode{};
  std::string instance_template{};
};

/// When a request that failed for want of capacity is made again: after base, 2·base, 4·base, …, at
/// most max.
struct RetryConfig {
  std::size_t limit = 3;  ///< attempts for one job; 0: for ever
  Seconds base = 60s;
  Seconds max = 30min;
};

/// What health checks write about a GPU that is broken.
[[nodiscard]] std::vector<std::string> default_repair_reasons();

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
  /// A job that has some of its VMs waits so long for the others; 0: for ever.
  Seconds incomplete_timeout = 10min;
  RetryConfig retry{};
  PlacementConfig placement{};
  std::string machine_type{};  ///< only to check what else is asked for; empty: not said
  std::size_t max_nodes = 0;   ///< VMs that there are or that are asked for at once; 0: no limit
  std::size_t race = 1;        ///< so many of the zones are asked at once, the first wins
  std::vector<StockoutStep> on_stockout{};
  Seconds resubmit_after = 0s;    ///< a request that has waited so long is renewed; 0: never
  Seconds lease_warning = 10min;  ///< before the end of its VMs a job is warned; 0: never
  int lease_signal = SIGURG;      ///< which a process that does not know it ignores; 0: none
  /// A node drained with one of these in its reason (any case) gets a new VM.
  std::vector<std::string> repair_reasons = default_repair_reasons();
  std::size_t max_repairs = 3;  ///< of one node within a day; then it stays drained
  std::string reservation{};    ///< known only to be refused: Flex Start VMs cannot use one
};

/// How many nodes may be in one group: a placement policy holds only so many together.
[[nodiscard]] std::size_t group_capacity(const NodesetConfig& nodeset);

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

  using Place = NodePlace;

  NodePlaces places{};  ///< built by load_config

  [[nodiscard]] const Place* find(const NodeName& node) const { return places.find(node); }
};

}  // namespace flex

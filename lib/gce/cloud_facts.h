// SPDX-License-Identifier: GPL-2.0-or-later
// What a doctor asks of Compute Engine: reads that no other program needs, and harmless questions
// for permissions. Works as Cloud does: answers come during run().
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"
#include "lib/gce/cloud.h"
#include "lib/gce/http.h"
#include "lib/gce/rest_cloud.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

struct Accelerators {
  std::string type{};  ///< "nvidia-h100-80gb"
  std::int64_t count = 0;
};

struct TemplateFacts {
  std::string name{};
  std::string machine_type{};        ///< without the zone
  std::string provisioning_model{};  ///< FLEX_START, SPOT, STANDARD, …
  std::string termination_action{};
  std::string on_host_maintenance{};
  std::string reservation{};  ///< consumeReservationType
  bool is_preemptible = false;
  std::optional<Seconds> max_run_duration{};
  std::vector<std::string> fixed_addresses{};  ///< IP addresses that only one VM can have
  std::vector<std::string> policies{};         ///< resource policies
  std::vector<Accelerators> accelerators{};
  std::vector<std::string> service_accounts{};
};

struct QuotaFacts {
  std::string metric{};
  double limit = 0;
  double usage = 0;
};

struct RegionFacts {
  std::string name{};
  std::string status{};              ///< UP, DOWN
  std::vector<std::string> zones{};  ///< names
  std::vector<QuotaFacts> quotas{};

  [[nodiscard]] const QuotaFacts* quota(std::string_view metric) const;
};

struct ZoneFacts {
  std::string name{};
  std::string region{};
  std::string status{};
};

struct MachineTypeFacts {
  std::string name{};
  std::int64_t cpus = 0;
  std::vector<Accelerators> accelerators{};
  std::string deprecated{};  ///< DEPRECATED, OBSOLETE, …; empty: in use
};

struct ProjectFacts {
  std::string name{};
  std::string number{};
};

/// A question for a permission: a call that can do no harm, for it names what cannot exist or says
/// what cannot be done.
struct Probe {
  std::string permission{};
  std::string method = "GET";
  std::string path{};  ///< below the project
  std::string body{};
  bool is_write = false;
  bool is_ours = true;  ///< false: only the doctor needs it
  std::string makes{};  ///< what there would be if it were done all the same: "group flex-…"
  std::string undo{};   ///< the command that finds and ends it
};

/// All that are to be asked in a region. `zone`: one of the region's; `has_placement`,
/// `has_loose`: whether workload policies and VMs without a group are used at all.
struct ProbeWish {
  std::string region{};
  std::string zone{};
  bool has_placement = false;
  bool has_loose = false;
  bool has_writes = true;
};

[[nodiscard]] std::vector<Probe> permission_probes(const ProbeWish& wish);

/// The permission that a refusal names ("Required 'compute.x.get' permission for …"); empty: none.
[[nodiscard]] std::string named_permission(std::string_view message);

/// True where the token is not for Compute Engine: the VM's access scopes, whatever roles its
/// account has.
[[nodiscard]] bool lacks_scope(const Error& error);

[[nodiscard]] Result<TemplateFacts> parse_template(std::string_view text);
[[nodiscard]] Result<RegionFacts> parse_region(std::string_view text);
[[nodiscard]] Result<ZoneFacts> parse_zone(std::string_view text);
[[nodiscard]] Result<MachineTypeFacts> parse_machine_type(std::string_view text);
[[nodiscard]] Result<ProjectFacts> parse_project(std::string_view text);
/// The messages of a group's listErrors.
[[nodiscard]] Result<std::vector<std::string>> parse_group_errors(std::string_view text);

class CloudFacts {
 public:
  virtual ~CloudFacts() = default;

  /// Done if a token can be had.
  virtual void fetch_token(Then<Done> then) = 0;
  virtual void fetch_project(Then<ProjectFacts> then) = 0;
  virtual void fetch_region(Then<RegionFacts> then) = 0;
  virtual void fetch_zone(const std::string& zone, Then<ZoneFacts> then) = 0;
  virtual void fetch_machine_type(const std::string& zone,
                                  const std::string& type,
                                  Then<MachineTypeFacts> then) = 0;
  /// As the config names it: a name, regions/…/instanceTemplates/… or a full URL. Invalid: one of
  /// another project, which only its own project shows.
  virtual void fetch_template(const std::string& given, Then<TemplateFacts> then) = 0;
  /// Groups of the region whose names start with `prefix`.
  virtual void fetch_groups(const std::string& prefix, Then<std::vector<Group>> then) = 0;
  virtual void fetch_group_errors(const MigName& group, Then<std::vector<std::string>> then) = 0;
  /// Done: the permission is held. Denied: it is missing; anything else: that is not known.
  virtual void probe(const Probe& probe, Then<Done> then) = 0;

  virtual void run() = 0;
  /// This machine's clock minus that of the last answer; nothing before the first.
  [[nodiscard]] virtual std::optional<Seconds> clock_skew() const = 0;
};

[[nodiscard]] Result<std::unique_ptr<CloudFacts>> open_cloud_facts(const CloudSettings& settings);
/// The same over any HttpClient (tests).
[[nodiscard]] Result<std::unique_ptr<CloudFacts>> open_cloud_facts(
    const CloudSettings& settings, std::unique_ptr<HttpClient> http);

}  // namespace flex

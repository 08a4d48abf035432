// SPDX-License-Identifier: GPL-2.0-or-later
// Carries a ResumePlan out: first Compute Engine, all groups and requests side by side, then what
// Slurm must be told.
#pragma once

#include "lib/config/config.h"
#include "lib/core/log.h"
#include "lib/gce/cloud.h"
#include "lib/slurm/scheduler.h"
#include "resume/demand.h"
#include "resume/plan.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace flex {

enum class RequestResult {
  Requested,
  Existing,  ///< somebody asked for exactly this before; as good as Requested
  Unwanted,  ///< its job has gone while something had to be waited for: nothing was asked for
  Failed,
};

/// What is told of an Unwanted one.
inline constexpr const char* kNotWantedAnyMore =
    "while it was waited for, what wanted these nodes has gone, or has them";

struct RequestOutcome {
  PlannedRequest request{};
  RequestResult result = RequestResult::Failed;
  Error error{};  ///< if Failed
};

/// How often and how long resume looks whether a name that is still being deleted is free.
struct NameWait {
  std::chrono::milliseconds poll{1000};
  int limit = 30;
  /// Whether to wait for what becomes of the request: flex-resume leaves that to the sweeper.
  bool settle = false;
};

/// Whether slurmctld still wants what was planned. Asked only after something took its time (a
/// group to be made, a name to become free) or somebody else has asked meanwhile: what was known
/// when all was planned need not be so any more. Empty: always wanted.
using StillWanted = std::function<bool(const PlannedRequest&)>;

/// What became of a request that was to be given up.
struct CancelOutcome {
  PlannedCancel cancel{};
  std::optional<Error> error{};  ///< none: it is cancelled, or gone
};

/// Gives up what the plan does not need. Requests for the nodes of one that could not be cancelled
/// are taken out of the plan and refused: the sweeper asks. To be called before apply_to_cloud.
/// `settle`: waits until they are cancelled, so that their slots are free. Runs the cloud.
[[nodiscard]] std::vector<CancelOutcome> cancel_first(Cloud& cloud,
                                                      ResumePlan& plan,
                                                      bool settle = false);

/// Cancels requests that were just taken (find_parts): a part of a job is not bought. What is
/// cancelled becomes a failed outcome that waits for its turn. Runs the cloud.
[[nodiscard]] std::vector<CancelOutcome> take_back(Cloud& cloud,
                                                   const std::vector<PlannedCancel>& parts,
                                                   std::vector<RequestOutcome>& outcomes);

/// Creates what is missing and asks. One request's failure never stops another. Runs the cloud;
/// does not wait for VMs.
[[nodiscard]] std::vector<RequestOutcome> apply_to_cloud(Cloud& cloud,
                                                         const ResumePlan& plan,
                                                         const NameWait& wait = {},
                                                         const StillWanted& is_wanted = {});

/// A refusal for good of what is only one of several ways is none: nodes that are asked for
/// otherwise, as `asked` or another outcome says, go on waiting.
void spare_asked(std::vector<RequestOutcome>& outcomes,
                 std::vector<Refusal>& refusals,
                 std::unordered_set<NodeName> asked = {});

/// Whether trying again could help: if not, the job is given back.
[[nodiscard]] bool is_permanent(const Error& error);

struct SlurmReport {
  const Demand& demand;
  const ResumePlan& plan;
  const std::vector<RequestOutcome>& outcomes;
};

/// What giving back needs.
struct GiveBackTo {
  Scheduler& scheduler;
  const Config& config;
  const Log& log;
  /// How long to wait for a POWER_UP that slurmctld has not carried out: lib/fleet/power_down.h.
  std::chrono::milliseconds patience{0};
};

/// Powers down nodes whose job is gone. To be called as soon as that is known: a moment later
/// another job may have been put on them. False if Slurm did not take it.
/// What slurmctld is about to wake is left in `unwanted`, to be tried again when there is time.
[[nodiscard]] bool release_unwanted(const GiveBackTo& slurm, std::vector<NodeName>& unwanted);

/// Tells capped jobs so, and gives back the jobs that cannot be served: comment, hold, and one
/// POWER_DOWN_FORCE for all the nodes that were to come up for them. False if anything could not be
/// told.
[[nodiscard]] bool apply_to_slurm(const GiveBackTo& slurm, const SlurmReport& report);

}  // namespace flex

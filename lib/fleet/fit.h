// SPDX-License-Identifier: GPL-2.0-or-later
// Whether a request is the one that the jobs on its nodes need (pure). flex-resume and the sweeper
// judge with the same function.
#pragma once

#include "lib/config/config.h"
#include "lib/core/domain.h"

#include <string>
#include <vector>

namespace flex {

/// What is known of the nodes, by whoever judges.
class NodeFacts {
 public:
  NodeFacts() = default;
  NodeFacts(const NodeFacts&) = delete;
  NodeFacts& operator=(const NodeFacts&) = delete;
  virtual ~NodeFacts() = default;

  /// The jobs that hold the node.
  [[nodiscard]] virtual const std::vector<const Job*>& jobs_on(const NodeName& node) const = 0;
  /// The node is to come up and has no VM.
  [[nodiscard]] virtual bool lacks_vm(const NodeName& node) const = 0;
  /// All active requests that name the node.
  [[nodiscard]] virtual std::vector<const ResizeRequest*> requests_on(
      const NodeName& node) const = 0;
};

enum class Fit {
  Right,     ///< it stays
  TooShort,  ///< it names the right nodes, but a job on them needs VMs for longer
  Wrong,     ///< no job needs exactly this
};

struct Judgement {
  Fit fit = Fit::Right;
  std::string why{};  ///< if it is not right
};

/// A request is right for a job that holds all of its nodes, if it names all of the job's nodes
/// that have no VM (in the same nodeset and group; above 1,000 nodes any part of them), and lasts
/// as long as every job on its nodes needs. Nodes that another job's request is for do not count,
/// nor static ones. The request of a job that is gone is right only for a job that needs exactly
/// that; else it is wrong. Whether anybody wants its nodes at all is not judged here: a request
/// whose nodes have no job is right.
[[nodiscard]] Judgement judge(const Config& config,
                              const NodeFacts& facts,
                              const ResizeRequest& request);

/// The longest run duration that a job on these nodes needs, as far as the nodeset allows it.
[[nodiscard]] Seconds needed_run(const Config& config,
                                 const NodeFacts& facts,
                                 const std::vector<NodeName>& nodes);

/// Whether a VM that ends then is of use to a job that still waits for others: it lasts for the
/// job's time limit from now on; or it came after the job had got its nodes and lasts as long as
/// one that is made for the job, however long it takes to boot.
[[nodiscard]] bool is_long_enough(const NodesetConfig& nodeset,
                                  const Job& job,
                                  TimePoint ends,
                                  TimePoint now);

}  // namespace flex

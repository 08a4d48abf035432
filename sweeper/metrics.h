// SPDX-License-Identifier: GPL-2.0-or-later
// What /metrics tells, in Prometheus' words. Counters and histograms grow from the sweeper's start
// on; gauges are made anew from each look, so that nothing stale is told. Labels have few values:
// no job, node or request is named.
#pragma once

#include "lib/config/config.h"
#include "lib/fleet/history.h"
#include "lib/gce/cloud.h"
#include "sweeper/memory.h"
#include "sweeper/snapshot.h"
#include "sweeper/status.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace flex {

/// What the gauges are made of.
struct MetricsView {
  const Config& config;
  const Snapshot& shot;
  const Memory& memory;
  const Status& status;
  std::size_t waiting = 0;  ///< requests that wait for their turn
};

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// A call of the sweeper's own.
  void note_call(const CallNote& note);
  /// Something in the history: calls and deeds of other programs, what the sweeper has seen.
  void note_event(const Event& event);
  /// What the sweeper has just done; an event without a rule is no action.
  void note_action(const Event& event);
  /// A complete look: what has changed since the last one.
  void note_look(const Config& config, const Snapshot& shot);
  /// Another host looks now: what was seen is not compared with what will be.
  void forget_looks();
  /// The end of a round: "complete", "failed" (an action failed), "incomplete" or "passive".
  void note_round(std::string_view result, std::chrono::milliseconds took);

  /// In Prometheus' text format.
  [[nodiscard]] std::string text(const MetricsView& view) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
// The gauges of /metrics (only for metrics.cc).
#pragma once

#include "sweeper/metrics.h"

#include <prometheus/registry.h>

namespace flex {

/// Fills an empty registry.
void add_gauges(prometheus::Registry& registry, const MetricsView& view);

}  // namespace flex

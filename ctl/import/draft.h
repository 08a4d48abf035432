// SPDX-License-Identifier: GPL-2.0-or-later
// The flex-start.yaml that is being made, and how it is written (pure).
#pragma once

#include "ctl/import/block.h"
#include "lib/config/config.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// A nodeset as it will be written. Nodes are called PREFIX-0, PREFIX-1, …, the static ones first.
struct NodesetDraft {
  std::string name{};
  std::string prefix{};
  std::size_t node_count = 0;
  std::size_t static_count = 0;
  std::string instance_template{};
  bool is_template_made_up = false;
  std::string machine_type{};
  std::vector<std::string> zones{};
  Mode mode = Mode::Queued;
  PlacementConfig placement{};
  Seconds max_run_duration = kMaxRunDuration;
  bool use_job_duration = false;

  /// Where a setting of it stands in the file: "nodesets.a3u.zones".
  [[nodiscard]] std::string path(std::string_view setting) const;
};

struct Draft {
  std::string cluster{};  ///< empty: not said
  std::string project{};  ///< empty: not said
  std::string region{};   ///< empty: not said
  bool is_region_made_up = false;
  std::vector<NodesetDraft> nodesets{};
};

/// What the reader of a format gets and gives.
struct Import {
  Problems problems;
  Report report{};
  Draft draft{};

  explicit Import(const std::string& file) : problems(file) { report.file = file; }

  void mapped(Mark mark, std::string from, std::string to);
  void assumed(Mark mark, std::string to, std::string note);
  void no_equal(Mark mark, std::string from, std::string note);
  void left_out(Mark mark, std::string from, std::string note);
};

/// Zones that were read: reports those that are none, and gives the others, each once.
[[nodiscard]] std::vector<std::string> good_zones(const std::vector<Taken<std::string>>& zones,
                                                  Import& out);

/// The region, from `region` where it was said, else from the nodesets' zones; made up where
/// nothing tells, which the report says.
void settle_region(Import& out);

/// A template's name for a nodeset that has none: somebody must fill it in.
void make_up_template(NodesetDraft& nodeset, Mark mark, Import& out);

/// The text of flex-start.yaml.
[[nodiscard]] std::string render(const Draft& draft, const std::string& origin);

}  // namespace flex

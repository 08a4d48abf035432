// SPDX-License-Identifier: GPL-2.0-or-later
// The neighbours' formats, and the one way in (pure).
#pragma once

#include "ctl/import/draft.h"

#include <string>
#include <string_view>
#include <vector>

namespace flex {

struct ImportOptions {
  std::string cluster{};                ///< wins over what the file says
  std::vector<std::string> nodesets{};  ///< only these; empty: all
};

/// Nodesets of the Cluster Toolkit (SlurmGCP): a blueprint, config.yaml of a controller,
/// nodeset_configs/NAME.yaml, the controller module's variables, or one nodeset's settings.
void read_slurm_gcp(const TreeNode& root, const ImportOptions& options, Import& out);

/// Node pools of Slurm on Vertex AI: a cluster, a list of pools, or one pool.
void read_vertex(const TreeNode& root, const ImportOptions& options, Import& out);

using ReadFormat = void (*)(const TreeNode&, const ImportOptions&, Import&);

/// What came out of a file: a flex-start.yaml that loads, or problems.
struct Imported {
  std::string yaml{};  ///< empty if there are problems
  Report report{};
  std::vector<Problem> problems{};
};

/// Reads a text, JSON or YAML; `file` stands for it in messages.
[[nodiscard]] Imported import_text(std::string_view text,
                                   const std::string& file,
                                   ReadFormat read,
                                   const ImportOptions& options);

/// True if the nodeset is one that was asked for.
[[nodiscard]] bool is_asked_for(const ImportOptions& options, std::string_view nodeset);

}  // namespace flex

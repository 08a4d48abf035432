// SPDX-License-Identifier: GPL-2.0-or-later
// Every key of flex-start.yaml, and what reads it.
#pragma once

#include "lib/config/config.h"
#include "lib/config/reader.h"

#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// One key of a section that is held in a T.
template <class T>
struct Field {
  std::string_view name;
  void (*read)(Reader& reader, const Setting& setting, T& out);
};

/// A file's top level; nodesets and defaults are read after the rest, by load.cc.
struct TopLevel {
  Config& config;
  const TreeNode* defaults = nullptr;
  const TreeNode* nodesets = nullptr;
};

/// Reads all keys of the file's top level, of a nodeset, of `defaults`.
void read_top_level(Reader& reader, const TreeNode& map, TopLevel& out);
void read_nodeset(Reader& reader, const TreeNode& map, NodesetConfig& out);
void read_defaults(Reader& reader, const TreeNode& map, NodesetConfig& out);

/// All keys, dotted, "NAME" for a nodeset's name: "api.endpoint", "nodesets.NAME.zones".
[[nodiscard]] std::vector<std::string> schema_keys();

}  // namespace flex

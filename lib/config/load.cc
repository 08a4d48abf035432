// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/load.h"

#include "lib/config/problems.h"
#include "lib/config/reader.h"
#include "lib/config/schema.h"
#include "lib/config/tree.h"
#include "lib/config/validate.h"

#include <fmt/format.h>

namespace flex {

namespace {

/// More groups than a project's quota has.
constexpr std::size_t kMaxNodesets = 1000;

/// The nodesets, each on top of a copy of the defaults: so each wins key by key.
void read_nodesets(Reader& reader, const TopLevel& top, Config& config, Sources& sources) {
  NodesetConfig defaults;
  Marks default_marks;
  if (top.defaults != nullptr) {
    reader.marks = &default_marks;
    read_defaults(reader, *top.defaults, defaults);
  }
  if (top.nodesets == nullptr) {
    if (!sources.top.has("nodesets")) {
      reader.problems().add({},
                            "there is no 'nodesets' section",
                            "see flex-start.yaml(5); a nodeset is a name with nodes and an "
                            "instance_template below it");
    }
    return;
  }
  const TreeNode& map = *top.nodesets;
  if (map.keys.empty())
    reader.problems().add(map.mark, "'nodesets' is empty", "write a name and its keys below it");
  if (map.keys.size() > kMaxNodesets) {
    reader.problems().add(map.mark, fmt::format("more than {} nodesets", kMaxNodesets));
    return;
  }
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const Setting setting{map.keys[i], map.items[i]};
    if (!is_rfc1035(setting.key.text)) {
      reader.problems().add(
          setting.key.mark,
          fmt::format("{} is not a good nodeset name", show(setting.key.text)),
          "lower-case letters, digits and '-', a letter first, at most 63 characters");
      continue;
    }
    if (!reader.map(setting)) continue;
    NodesetConfig nodeset = defaults;
    Marks marks = default_marks;
    marks.self = setting.key.mark;
    nodeset.name = setting.key.text;
    reader.marks = &marks;
    read_nodeset(reader, setting.value, nodeset);
    config.nodesets.push_back(std::move(nodeset));
    sources.nodesets.push_back(std::move(marks));
  }
}

void read_document(const TreeNode& root, Config& config, Problems& problems) {
  if (root.kind == TreeNode::Kind::Null) {
    problems.add({}, "the file is empty", "see flex-start.yaml(5) for what belongs in it");
    return;
  }
  if (root.kind != TreeNode::Kind::Map) {
    problems.add(root.mark, "the file must be made of 'key: value' lines");
    return;
  }
  Sources sources;
  Reader reader{problems};
  reader.marks = &sources.top;
  TopLevel top{.config = config};
  read_top_level(reader, root, top);
  read_nodesets(reader, top, config, sources);
  validate(config, sources, problems);
}

}  // namespace

LoadedConfig parse_config(std::string_view text, const std::string& name) {
  Problems problems{name};
  LoadedConfig loaded;
  loaded.config.file = name;
  if (const auto root = parse_tree(text, problems)) read_document(*root, loaded.config, problems);
  loaded.problems = problems.take();
  return loaded;
}

}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
// slurm.conf as text, each setting with its place: what an admin has to change. What slurmctld made
// of it is running_conf.h's business. Reads any text without failing; what Slurm would not take is
// among the problems.
#pragma once

#include "lib/core/names.h"
#include "lib/core/result.h"

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// A line of a file, 1-based; 0: the file as a whole.
struct ConfPlace {
  std::string file{};
  int line = 0;
  friend bool operator==(const ConfPlace&, const ConfPlace&) = default;
};

/// One "Key=Value".
struct ConfSetting {
  std::string key{};  ///< as written
  std::string value{};
  ConfPlace place{};
};

/// A line that describes something: NodeName=…, PartitionName=…, NodeSet=…. What it does not say
/// itself has been taken from the DEFAULT lines before it.
struct ConfEntry {
  std::string name{};                         ///< the value of its first key
  std::map<std::string, std::string> more{};  ///< by key in lower case
  ConfPlace place{};

  /// Empty: it is not said.
  [[nodiscard]] std::string get(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const;
};

struct ConfProblem {
  ConfPlace place{};
  std::string what{};
};

struct SlurmConf {
  std::string file{};
  std::vector<ConfSetting> settings{};
  std::vector<ConfEntry> nodes{};
  std::vector<ConfEntry> partitions{};
  std::vector<ConfEntry> nodesets{};
  std::vector<ConfProblem> problems{};

  /// In any case; the last one counts. Null: it is not said.
  [[nodiscard]] const ConfSetting* find(std::string_view key) const;
  /// Empty: it is not said.
  [[nodiscard]] std::string get(std::string_view key) const;
  /// Where it is said, or the file as a whole.
  [[nodiscard]] ConfPlace place_of(std::string_view key) const;
};

/// The text of a file that another one includes.
using ReadInclude = std::function<Result<std::string>(const std::string& path)>;

/// `file` stands for the text in places; relative names of included files are those of the
/// directory of the file that includes them. Pure but for `read`.
[[nodiscard]] SlurmConf parse_slurm_conf(std::string_view text,
                                         const std::string& file,
                                         const ReadInclude& read);

/// Invalid: the file itself cannot be read. An included one that cannot is a problem.
[[nodiscard]] Result<SlurmConf> load_slurm_conf(const std::string& path);

/// The file that Slurm's programs read: $SLURM_CONF, else the usual places; empty where there is
/// none.
[[nodiscard]] std::string find_slurm_conf();

/// True for a word of a list: "cloud" of "jobs,cloud", "idle_on_node_suspend" of
/// "power_save_interval=1,idle_on_node_suspend". In any case.
[[nodiscard]] bool has_word(std::string_view list, std::string_view word);

[[nodiscard]] std::string lower_case(std::string_view text);

}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
// A program that has loaded the plugin: sbatch, slurmstepd, … as far as the plugin sees them.
#pragma once

#include "plugin/spank_api.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace flex::test {

/// How the fake's libslurm behaves when it is asked for nodes.
enum class Controller { Answers, Fails, Hangs, Exits };

struct FakeOption {
  std::string name{};
  std::string argument{};
  std::string usage{};
  std::function<int(const char* value, int remote)> call{};
};

/// The one that Slurm's functions in this program belong to. A new test begins with a new one.
struct FakeSpank {
  spank_context_t context = S_CTX_ALLOCATOR;
  std::map<spank_item_t, std::uint32_t> items{};
  std::map<std::string, std::string> job_environment{};
  std::vector<std::string> errors{};
  std::vector<std::string> infos{};
  std::vector<FakeOption> options{};
  std::vector<std::string> unset_for_job{};  ///< what spank_job_control_unsetenv was called for

  /// The program's own options, as --name=value.
  std::map<std::string, std::string> typed{};
  bool takes_comment = true;

  std::map<std::string, std::string> node_extra{};  ///< slurmctld's nodes
  Controller controller = Controller::Answers;

  /// Calls to slurmctld, counted also in children.
  [[nodiscard]] int single_loads() const;
  [[nodiscard]] int full_loads() const;

  /// The plugin's callbacks with these words in plugstack.conf.
  std::vector<std::string> words{};
  int call(spank_f& callback);

  /// The registered option of this name, as typed by the job's author; -1 if there is none.
  int type(const std::string& name, const std::string& value, int remote = 0);
};

/// Makes a new one, and forgets the one before.
FakeSpank& new_spank(spank_context_t context);

}  // namespace flex::test

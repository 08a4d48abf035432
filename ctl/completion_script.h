// SPDX-License-Identifier: GPL-2.0-or-later
// flexctl's command line as a tree, and scripts that complete it in a shell (pure).
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace flex {

/// What may stand for a value: words, and words that only flexctl knows when it is asked.
struct CompletedValue {
  bool is_file = false;
  bool is_nodeset = false;
  bool is_request = false;
  std::vector<std::string> words{};
};

struct CompletedOption {
  std::string name{};  ///< "--json"
  std::string what{};
  bool takes_value = false;
  CompletedValue value{};
};

struct CompletedCommand {
  std::string name{};
  std::string what{};
  std::vector<CompletedOption> options{};
  CompletedValue value{};  ///< of what is no option
  std::vector<CompletedCommand> commands{};
};

[[nodiscard]] CompletedCommand to_tree(const CLI::App& app);

[[nodiscard]] std::string bash_script(const CompletedCommand& root);
[[nodiscard]] std::string zsh_script(const CompletedCommand& root);

}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
// Nodes of nodesets with max_nodes that a program is about to ask for. Two programs that look at
// Compute Engine at the same time would both see the same room: so each writes into a file in the
// state directory what it asks for before it asks, under a lock, and counts what the others have
// written. What a program wrote that died counts until it is certain that nothing comes of it: a
// minute after somebody has noticed that its process is gone.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// What one program asks for.
struct AskedEntry {
  TimePoint begun{};
  /// Until then a look may not show what became of it; 0: it is being asked for.
  TimePoint answered{};
  std::string by{};  ///< the program, its host and process
  std::vector<NodeName> nodes{};

  friend bool operator==(const AskedEntry&, const AskedEntry&) = default;
};

using AskedNodes = std::vector<AskedEntry>;

/// A line for each entry.
[[nodiscard]] std::string to_text(const AskedNodes& asked);
/// Invalid for anything that to_text did not write.
[[nodiscard]] Result<AskedNodes> parse_asked_nodes(std::string_view text);

/// The nodes that count although a look that began at `looked` may not show them.
[[nodiscard]] std::set<NodeName> find_unseen(const AskedNodes& asked,
                                             TimePoint looked,
                                             TimePoint now);

/// The file of one state directory, as one program sees it.
class AskedFile {
 public:
  AskedFile(std::string state_dir, std::string_view program);

  /// What the others ask for, and what this program has asked for lately.
  [[nodiscard]] Result<AskedNodes> load() const;

  /// The same; if one of the programs has died on this host, that is written down.
  [[nodiscard]] Result<AskedNodes> load_and_tidy(TimePoint now);

  /// Chooses the nodes that are asked for now, from what is in the file, and writes them down. No
  /// other program does so meanwhile. An error: nothing is written, and nothing may be asked for.
  using Choose = std::function<std::vector<NodeName>(const AskedNodes&)>;
  [[nodiscard]] Result<Done> reserve(TimePoint now, const Choose& choose);

  /// What has become of it: nodes that Google has refused count no longer, those of which nothing
  /// is known count for a while, the others are seen by the next look.
  struct Answers {
    std::set<NodeName> refused{};
    std::set<NodeName> unknown{};
  };

  [[nodiscard]] Result<Done> settle(TimePoint now, const Answers& answers);

 private:
  /// What is read; none if the file is damaged and so old that nothing in it counts any more.
  [[nodiscard]] Result<AskedNodes> load_for_change(TimePoint now) const;
  [[nodiscard]] Result<Done> change(TimePoint now,
                                    const std::function<bool(AskedNodes&)>& edit) const;

  std::string state_dir_;
  std::string by_;
};

}  // namespace flex

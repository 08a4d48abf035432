// SPDX-License-Identifier: GPL-2.0-or-later
// Tree to typed values, one setting at a time: what can be said about a value on its own is said
// here (pure).
#pragma once

#include "lib/config/config.h"
#include "lib/config/tree.h"

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flex {

/// More than any region has.
inline constexpr std::size_t kMaxZones = 32;

/// Where the settings of one section were written, by dotted key ("dws_flex.max_run_duration",
/// "zones.0", "zones.none" for an empty list). A setting that is not in the file has no mark.
class Marks {
 public:
  Mark self{};  ///< of the section's own key

  void set(const std::string& key, Mark mark) { marks_[key] = mark; }

  [[nodiscard]] bool has(std::string_view key) const { return marks_.find(key) != marks_.end(); }

  /// The section's own place for a setting that is not in the file.
  [[nodiscard]] Mark at(std::string_view key) const {
    const auto found = marks_.find(key);
    return found == marks_.end() ? self : found->second;
  }

  /// Forgets "zones.0", "zones.1", … when the list is written again.
  void drop_items(const std::string& key);

  /// Forgets a setting that another one takes the place of.
  void drop(const std::string& key) { marks_.erase(key); }

 private:
  std::map<std::string, Mark, std::less<>> marks_;
};

/// One `key: value` of the file.
struct Setting {
  const TreeNode& key;
  const TreeNode& value;
};

/// Limits are inclusive.
struct Range {
  std::size_t least = 0;
  std::size_t most = 0;
};

struct DurationRange {
  Seconds least{};
  Seconds most{};
};

/// Reads into `out`, or reports and leaves `out` alone.
class Reader {
 public:
  explicit Reader(Problems& problems) : problems_(problems) {}

  Problems& problems() { return problems_; }

  Marks* marks = nullptr;  ///< of the section being read
  std::string prefix{};    ///< of its keys: "" or "dws_flex."

  /// A scalar's text; an empty one is refused.
  bool text(const Setting& setting, std::string& out);
  void number(const Setting& setting, Range range, std::size_t& out);
  void boolean(const Setting& setting, bool& out);
  void duration(const Setting& setting, DurationRange range, Seconds& out);
  void hostlist(const Setting& setting, std::vector<NodeName>& out);
  void zones(const Setting& setting, std::vector<std::string>& out);
  /// A list of texts of which none is blank; the list itself may be empty.
  void texts(const Setting& setting, std::vector<std::string>& out);
  /// A signal's number by its name; 0 for "none".
  void signal(const Setting& setting, int& out);

  /// A text that must pass `is_good`; `what` completes "'key' must be …".
  void shaped(const Setting& setting,
              bool (*is_good)(std::string_view),
              std::string_view what,
              std::string& out);

  template <class T>
  bool choice(const Setting& setting,
              std::initializer_list<std::pair<std::string_view, T>> choices,
              T& out) {
    std::string word;
    if (!text(setting, word)) return false;
    std::vector<std::string_view> words;
    for (const auto& [name, value] : choices) {
      if (name == word) {
        out = value;
        return true;
      }
      words.push_back(name);
    }
    refuse_choice(setting, word, words);
    return false;
  }

  /// True if the value is a map; says otherwise.
  bool map(const Setting& setting);

  /// True if the value is a list of at most `most` things, which `what` names; says otherwise.
  bool list(const Setting& setting, std::size_t most, std::string_view what, std::string_view hint);

 private:
  bool scalar(const Setting& setting, std::string_view wanted);
  void refuse_choice(const Setting& setting,
                     const std::string& word,
                     const std::vector<std::string_view>& words);

  Problems& problems_;
  /// Across all nodesets: a cluster has no more, and a file of hostlists must not eat the memory.
  std::size_t nodes_read_ = 0;
};

}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/reader.h"

#include "lib/config/keys.h"
#include "lib/config/shapes.h"
#include "lib/core/duration.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace flex {

namespace {

/// Each is looked for in the reason of each drained node.
constexpr std::size_t kMaxTexts = 100;
/// Of all nodesets, static ones counted twice.
constexpr std::size_t kMaxNodes = 2 * kMaxHosts;

std::string_view kind_name(TreeNode::Kind kind) {
  switch (kind) {
    case TreeNode::Kind::Null:
      return "nothing";
    case TreeNode::Kind::Scalar:
      return "a single value";
    case TreeNode::Kind::Sequence:
      return "a list";
    case TreeNode::Kind::Map:
      return "a section";
    case TreeNode::Kind::Bad:
      break;
  }
  return "something else";
}

std::string must_be(const Setting& setting, std::string_view wanted) {
  return fmt::format("{} must be {}", show(setting.key.text), wanted);
}

std::string cannot_be(const Setting& setting, const std::string& text) {
  return fmt::format("{} cannot be {}", show(setting.key.text), show(text));
}

}  // namespace

void Marks::drop_items(const std::string& key) {
  const std::string from = key + ".";
  auto it = marks_.lower_bound(from);
  while (it != marks_.end() && it->first.starts_with(from)) it = marks_.erase(it);
}

bool Reader::scalar(const Setting& setting, std::string_view wanted) {
  const TreeNode& value = setting.value;
  if (value.kind == TreeNode::Kind::Scalar) return true;
  if (value.kind != TreeNode::Kind::Bad) {
    problems_.add(value.mark,
                  must_be(setting, fmt::format("{}, not {}", wanted, kind_name(value.kind))));
  }
  return false;
}

bool Reader::map(const Setting& setting) {
  const TreeNode& value = setting.value;
  if (value.kind == TreeNode::Kind::Map) return true;
  if (value.kind != TreeNode::Kind::Bad) {
    const bool is_null = value.kind == TreeNode::Kind::Null;
    problems_.add(is_null ? setting.key.mark : value.mark,
                  must_be(setting, fmt::format("a section, not {}", kind_name(value.kind))),
                  "write its keys indented below it");
  }
  return false;
}

bool Reader::text(const Setting& setting, std::string& out) {
  if (!scalar(setting, "a text")) return false;
  const std::string& text = setting.value.text;
  if (text.empty()) {
    problems_.add(setting.value.mark,
                  fmt::format("{} is empty", show(setting.key.text)),
                  "give it a value or remove the key");
    return false;
  }
  // A quoted text may hold what the file may not: "a\nb".
  if (std::any_of(text.begin(), text.end(), is_control)) {
    problems_.add(setting.value.mark,
                  fmt::format("a control character in {}", show(setting.key.text)),
                  "remove it");
    return false;
  }
  out = text;
  return true;
}

void Reader::shaped(const Setting& setting,
                    bool (*is_good)(std::string_view),
                    std::string_view what,
                    std::string& out) {
  std::string value;
  if (!text(setting, value)) return;
  if (is_good(value)) {
    out = std::move(value);
    return;
  }
  problems_.add(setting.value.mark, cannot_be(setting, value), std::string(what));
}

void Reader::number(const Setting& setting, Range range, std::size_t& out) {
  if (!scalar(setting, "a whole number")) return;
  const std::string& text = setting.value.text;
  std::size_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = end == text.data() + text.size() && !text.empty();
  if (setting.value.is_quoted || !is_number || status == std::errc::invalid_argument) {
    problems_.add(setting.value.mark,
                  must_be(setting, fmt::format("a whole number, not {}", show(text))),
                  setting.value.is_quoted ? "write it without quotes" : "");
    return;
  }
  if (status != std::errc{} || value < range.least || value > range.most) {
    problems_.add(setting.value.mark,
                  cannot_be(setting, text),
                  fmt::format("from {} to {}", range.least, range.most));
    return;
  }
  out = value;
}

void Reader::boolean(const Setting& setting, bool& out) {
  if (!scalar(setting, "true or false")) return;
  constexpr std::array<std::string_view, 6> kTrue{"true", "True", "TRUE", "yes", "on", "Yes"};
  constexpr std::array<std::string_view, 6> kFalse{"false", "False", "FALSE", "no", "off", "No"};
  const std::string& text = setting.value.text;
  const auto among = [&text](const auto& words) {
    return std::find(words.begin(), words.end(), text) != words.end();
  };
  if (!setting.value.is_quoted && among(kTrue)) {
    out = true;
  } else if (!setting.value.is_quoted && among(kFalse)) {
    out = false;
  } else {
    problems_.add(setting.value.mark,
                  must_be(setting, fmt::format("true or false, not {}", show(text))),
                  setting.value.is_quoted ? "write it without quotes" : "");
  }
}

void Reader::duration(const Setting& setting, DurationRange range, Seconds& out) {
  if (!scalar(setting, "a duration")) return;
  const std::string& text = setting.value.text;
  if (std::any_of(text.begin(), text.end(), is_control)) {
    problems_.add(setting.value.mark, must_be(setting, "a duration"), "write 3600, 90m, 12h or 7d");
    return;
  }
  const auto value = parse_duration(text);
  if (!value) {
    problems_.add(setting.value.mark,
                  fmt::format("{}: {}", show(setting.key.text), value.error().what));
    return;
  }
  if (*value < range.least || *value > range.most) {
    problems_.add(
        setting.value.mark,
        cannot_be(setting, text),
        fmt::format("from {} to {}", format_duration(range.least), format_duration(range.most)));
    return;
  }
  out = *value;
}

void Reader::hostlist(const Setting& setting, std::vector<NodeName>& out) {
  if (setting.value.kind == TreeNode::Kind::Sequence) {
    problems_.add(setting.value.mark,
                  must_be(setting, "one node list, not a YAML list"),
                  "write a3u-[0-63],a3u-70");
    return;
  }
  std::string list;
  if (!text(setting, list)) return;
  if (nodes_read_ > kMaxNodes) return;  // said already; expanding the rest could take minutes
  auto nodes = expand_hostlist(list);
  if (!nodes) {
    problems_.add(setting.value.mark,
                  fmt::format("{}: {}", show(setting.key.text), nodes.error().what),
                  "write node names as in slurm.conf: a3u-[0-63]");
    return;
  }
  nodes_read_ += nodes->size();
  if (nodes_read_ > kMaxNodes) {
    problems_.add(setting.value.mark,
                  fmt::format("more than {} nodes in all nodesets together", kMaxNodes));
    return;
  }
  for (const NodeName& node : *nodes) {
    if (is_rfc1035(node.text)) continue;
    problems_.add(setting.value.mark,
                  fmt::format("node {} cannot be the name of a VM", show(node.text)),
                  "lower-case letters, digits and '-', a letter first, at most 63 characters");
    return;
  }
  out = std::move(*nodes);
}

bool Reader::list(const Setting& setting,
                  std::size_t most,
                  std::string_view what,
                  std::string_view hint) {
  const TreeNode& value = setting.value;
  if (value.kind == TreeNode::Kind::Bad) return false;
  if (value.kind != TreeNode::Kind::Sequence) {
    problems_.add(value.mark,
                  must_be(setting, fmt::format("a list, not {}", kind_name(value.kind))),
                  std::string(hint));
    return false;
  }
  if (value.items.size() > most) {
    problems_.add(value.mark, fmt::format("more than {} {}", most, what));
    return false;
  }
  marks->drop_items(prefix + setting.key.text);
  return true;
}

void Reader::texts(const Setting& setting, std::vector<std::string>& out) {
  if (!list(setting, kMaxTexts, "texts", R"(write ["one text", "another"])")) return;
  std::vector<std::string> texts;
  for (const TreeNode& item : setting.value.items) {
    std::string one;
    const bool is_null = item.kind == TreeNode::Kind::Null;
    if (is_null || (item.kind == TreeNode::Kind::Scalar &&
                    item.text.find_first_not_of(' ') == std::string::npos)) {
      // An empty text is in every text.
      problems_.add(is_null ? setting.value.mark : item.mark,
                    fmt::format("an empty text in {}", show(setting.key.text)),
                    "remove it; [] is the empty list");
    } else if (text({setting.key, item}, one)) {
      texts.push_back(std::move(one));
    }
  }
  out = std::move(texts);
}

void Reader::signal(const Setting& setting, int& out) {
  std::string word;
  if (!text(setting, word)) return;
  if (const auto number = signal_number(word)) {
    out = *number;
    return;
  }
  problems_.add(setting.value.mark,
                cannot_be(setting, word),
                is_deaf_signal(word) ? "no process can catch it: use URG, USR1, USR2 or TERM"
                                     : fmt::format("one of {} or none", signal_names()));
}

void Reader::zones(const Setting& setting, std::vector<std::string>& out) {
  if (!list(setting, kMaxZones, "zones", "write [us-central1-a]")) return;
  const TreeNode& list = setting.value;
  if (list.items.empty()) marks->set(prefix + setting.key.text + ".none", list.mark);
  std::vector<std::string> zones;
  for (const TreeNode& item : list.items) {
    if (item.kind == TreeNode::Kind::Bad) continue;
    const std::string shown = item.kind == TreeNode::Kind::Scalar ? show(item.text) : "this";
    if (item.kind != TreeNode::Kind::Scalar || !is_zone(item.text)) {
      problems_.add(item.mark,
                    fmt::format("{} is not a zone", shown),
                    is_region(item.text) ? "that is a region; a zone is like us-central1-a"
                                         : "a zone is like us-central1-a");
    } else if (std::find(zones.begin(), zones.end(), item.text) != zones.end()) {
      problems_.add(item.mark, fmt::format("zone {} twice", shown), "remove one");
    } else {
      marks->set(fmt::format("{}{}.{}", prefix, setting.key.text, zones.size()), item.mark);
      zones.push_back(item.text);
    }
  }
  out = std::move(zones);
}

void Reader::refuse_choice(const Setting& setting,
                           const std::string& word,
                           const std::vector<std::string_view>& words) {
  const auto near = nearest(word, words);
  problems_.add(setting.value.mark,
                cannot_be(setting, word),
                near.empty() ? fmt::format("one of {}", fmt::join(words, ", "))
                             : fmt::format("did you mean '{}'?", near));
}

}  // namespace flex

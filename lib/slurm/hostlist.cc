// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/hostlist.h"

#include "lib/slurm/handles.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <utility>

namespace flex {
namespace {

// libslurm reads a name's last digits into an unsigned long and writes a name with more of them
// back wrong.
constexpr std::size_t kMaxDigits = 18;
constexpr std::size_t kMaxHostName = 255;
constexpr std::size_t kMaxQuoted = 60;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_alnum(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_name_char(char c) {
  return is_alnum(c) || c == '.' || c == '_' || c == '-';
}

std::string shown(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0x20 || byte > 0x7e) return fmt::format("byte 0x{:02x}", byte);
  return fmt::format("'{}'", c);
}

/// The text for a message: cut, and with nothing that could break a line.
std::string quoted(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kMaxQuoted)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte > 0x7e ? '?' : c;
  }
  return fmt::format("'{}{}'", out, text.size() > kMaxQuoted ? "…" : "");
}

/// Walks a node list once, checks every character of it and counts the hosts it stands for.
class Checker {
 public:
  explicit Checker(std::string_view text) : text_(text) {}

  /// The number of hosts, duplicates included.
  Result<std::size_t> count() {
    std::size_t total = 0;
    while (true) {
      const auto hosts = check_name();
      if (problem_) return *problem_;
      total += hosts;  // both at most kMaxHosts: no overflow
      if (total > kMaxHosts) return *fail(0, too_many());
      if (at_end()) return total;
      ++pos_;  // the comma that ended the name
    }
  }

 private:
  [[nodiscard]] bool at_end() const { return pos_ == text_.size(); }

  [[nodiscard]] char here() const { return text_[pos_]; }

  static std::string too_many() { return fmt::format("more than {} hosts", kMaxHosts); }

  const std::optional<Error>& fail(std::size_t place, std::string_view why) {
    problem_ =
        Error{ErrorKind::Invalid,
              fmt::format("node list {}: {} at character {}", quoted(text_), why, place + 1)};
    return problem_;
  }

  std::size_t fail_count(std::size_t place, std::string_view why) {
    fail(place, why);
    return 0;
  }

  /// One comma-separated item, up to its comma or the end.
  std::size_t check_name() {
    const std::size_t start = pos_;
    if (at_end() || here() == ',') return fail_count(start, "a name is missing");
    if (!is_alnum(here())) {
      return fail_count(
          start, fmt::format("a name starts with a letter or a digit, not with {}", shown(here())));
    }
    std::size_t hosts = 1;
    std::size_t length = 0;
    std::size_t digits = 0;
    bool has_range = false;
    bool ends_in_range = false;
    for (; !at_end() && here() != ','; ++pos_) {
      if (here() == '[') {
        const auto range = check_brackets();
        if (problem_) return 0;
        hosts *= range.count;  // both at most kMaxHosts
        if (hosts > kMaxHosts) return fail_count(start, too_many());
        digits += range.width;
        length += range.width;
        has_range = ends_in_range = true;
      } else if (is_name_char(here())) {
        digits = is_digit(here()) ? digits + 1 : 0;
        ++length;
        ends_in_range = false;
      } else {
        return fail_count(pos_, fmt::format("{} is not allowed", shown(here())));
      }
      if (digits > kMaxDigits) {
        return fail_count(start, fmt::format("a number of more than {} digits", kMaxDigits));
      }
    }
    if (length > kMaxHostName) return fail_count(start, "a name that is too long");
    // 22.05 refuses such a list, later releases take it.
    if (has_range && !ends_in_range) {
      return fail_count(pos_ - 1, "a name must end with its last ']': text after it");
    }
    return hosts;
  }

  struct Range {
    std::size_t count = 0;
    std::size_t width = 0;
  };

  /// "[0-2,7]"; leaves pos_ on the closing bracket.
  Range check_brackets() {
    const std::size_t open = pos_++;
    Range sum;
    while (true) {
      const auto item = check_range(open);
      if (problem_) return {};
      sum.count += item.count;
      sum.width = std::max(sum.width, item.width);
      if (sum.count > kMaxHosts) {
        fail(open, too_many());
        return {};
      }
      if (here() == ']') return sum;
      ++pos_;
    }
  }

  /// "7" or "0-2"; leaves pos_ on the ',' or ']' after it.
  Range check_range(std::size_t open) {
    const std::size_t start = pos_;
    const auto low = read_number();
    auto high = low;
    if (!problem_ && !at_end() && here() == '-') {
      ++pos_;
      high = read_number();
    }
    if (problem_) return {};
    if (at_end()) {
      fail(open, "'[' without its ']'");
      return {};
    }
    if (here() != ',' && here() != ']') {
      fail(pos_, fmt::format("{} is not allowed between brackets", shown(here())));
      return {};
    }
    check_ends(start, low, high);
    if (problem_) return {};
    const auto [first, last] = std::pair(value(low), value(high));
    return {.count = static_cast<std::size_t>(std::min<std::uint64_t>(last - first, kMaxHosts)) + 1,
            .width = high.size()};
  }

  void check_ends(std::size_t start, std::string_view low, std::string_view high) {
    if (value(high) < value(low)) {
      fail(start, fmt::format("the range {}-{} runs backwards", low, high));
    } else if (high.size() < low.size() || (high.size() > low.size() && high.front() == '0')) {
      fail(start, fmt::format("the ends of {}-{} have different zero padding", low, high));
    }
  }

  std::string_view read_number() {
    const std::size_t start = pos_;
    while (!at_end() && is_digit(here())) ++pos_;
    if (pos_ == start) {
      fail(start, "a number is missing");
    } else if (pos_ - start > kMaxDigits) {
      fail(start, fmt::format("a number of more than {} digits", kMaxDigits));
    }
    return text_.substr(start, pos_ - start);
  }

  static std::uint64_t value(std::string_view digits) {
    std::uint64_t number = 0;  // at most kMaxDigits digits: always fits
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
  }

  std::string_view text_;
  std::size_t pos_ = 0;
  std::optional<Error> problem_{};
};

}  // namespace

Result<std::vector<NodeName>> expand_hostlist(std::string_view text) {
  std::vector<NodeName> names;
  if (text.empty()) return names;
  const auto count = Checker(text).count();
  if (!count) return count.error();

  const slurm::HostlistPtr list(slurm_hostlist_create(std::string(text).c_str()));
  if (!list) {
    return Error{ErrorKind::Invalid, fmt::format("node list {}: Slurm refuses it", quoted(text))};
  }
  names.reserve(*count);
  std::unordered_set<std::string> seen;
  seen.reserve(*count);
  std::size_t shifted = 0;
  while (const slurm::MallocString name{slurm_hostlist_shift(list.get())}) {
    ++shifted;
    if (seen.emplace(name.get()).second) names.push_back({name.get()});
  }
  if (shifted != *count) {
    return Error{ErrorKind::Internal,
                 fmt::format("node list {}: {} hosts expected, libslurm makes it {}",
                             quoted(text),
                             *count,
                             shifted)};
  }
  return names;
}

std::string fold_hostlist(const std::vector<NodeName>& nodes) {
  if (nodes.empty()) return {};
  const slurm::HostlistPtr list(slurm_hostlist_create(nullptr));
  std::string text;
  if (!list) return text;
  for (const auto& node : nodes) slurm_hostlist_push_host(list.get(), node.text.c_str());
  slurm_hostlist_uniq(list.get());  // sorts, too
  for (std::size_t size = 1024;; size *= 2) {
    text.resize(size);
    const auto length = slurm_hostlist_ranged_string(list.get(), size, text.data());
    if (length < 0) continue;  // does not fit
    text.resize(static_cast<std::size_t>(length));
    return text;
  }
}

}  // namespace flex

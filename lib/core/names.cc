// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace flex {

namespace {

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr std::size_t kNameHashDigits = 8;
/// What is left of a name that is cut and gets a hash.
constexpr std::size_t kMaxStem = kMaxNameLength - kNameHashDigits - 1;

}  // namespace

bool is_rfc1035(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength) return false;
  if (!is_lower(name.front()) || name.back() == '-') return false;
  return std::all_of(
      name.begin(), name.end(), [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
}

std::string short_hash(const std::vector<std::string>& parts, std::size_t digits) {
  std::uint64_t hash = 14695981039346656037ULL;
  const auto mix = [&hash](unsigned char byte) {
    hash ^= byte;
    hash *= 1099511628211ULL;
  };
  for (const std::string& part : parts) {
    // The length goes in first: ("ab","c") and ("a","bc") differ.
    for (std::size_t size = part.size(), i = 0; i < sizeof(size); ++i)
      mix(static_cast<unsigned char>(size >> (8 * i)));
    for (const char c : part) mix(static_cast<unsigned char>(c));
  }
  // FNV's high bits avalanche poorly for short input: fold once more before taking digits.
  hash ^= hash >> 32;
  hash *= 0x9E3779B97F4A7C15ULL;
  hash ^= hash >> 29;
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; hash /= 36) text[i] = kDigits[hash % 36];
  return text;
}

namespace {

/// Only characters that a name may have, a letter in front; not yet cut.
std::string sanitized(std::string_view text) {
  std::string name;
  name.reserve(text.size() + 1);
  for (const char raw : text) {
    const char c = static_cast<char>(std::tolower(static_cast<unsigned char>(raw)));
    name.push_back(is_lower(c) || is_digit(c) ? c : '-');
  }
  if (name.empty() || !is_lower(name.front())) name.insert(name.begin(), 'x');
  return name;
}

}  // namespace

std::string to_rfc1035(std::string_view text, std::size_t limit) {
  std::string name = sanitized(text);
  if (name == text && name.size() <= limit && is_rfc1035(name)) return name;
  name.resize(std::min(name.size(), limit - kNameHashDigits - 1));
  while (name.back() == '-') name.pop_back();
  return name + "-" + short_hash({std::string(text)}, kNameHashDigits);
}

std::string group_name_prefix(std::string_view cluster, std::string_view nodeset) {
  std::string prefix = sanitized(fmt::format("{}-{}", cluster, nodeset));
  prefix.resize(std::min(prefix.size(), kMaxStem));
  while (prefix.back() == '-') prefix.pop_back();
  return prefix;
}

std::string cluster_name_prefix(std::string_view cluster) {
  std::string prefix = sanitized(cluster);
  while (prefix.back() == '-') prefix.pop_back();
  // Up to here a '-' always follows: the nodeset's, or the one before the hash.
  if (prefix.size() <= kMaxStem) return prefix + '-';
  prefix.resize(kMaxStem);
  while (prefix.back() == '-') prefix.pop_back();
  return prefix;
}

namespace {

MigName with_part(std::string base, std::size_t part, std::string_view variant) {
  if (!variant.empty()) base += fmt::format("-{}", variant);
  if (part > 0) base += fmt::format("-{}", part + 1);
  return {to_rfc1035(base)};
}

}  // namespace

MigName nodeset_group_name(std::string_view cluster,
                           std::string_view nodeset,
                           std::size_t part,
                           std::string_view variant) {
  return with_part(fmt::format("{}-{}", cluster, nodeset), part, variant);
}

MigName job_group_name(std::string_view cluster,
                       std::string_view nodeset,
                       JobId job,
                       std::size_t part,
                       std::string_view variant) {
  return with_part(fmt::format("{}-{}-j{}", cluster, nodeset, job), part, variant);
}

RequestName request_name(const RequestKey& key) {
  std::vector<std::string> parts{key.cluster,
                                 key.nodeset,
                                 std::to_string(key.job),
                                 std::to_string(key.restart_count),
                                 std::to_string(key.attempt)};
  parts.reserve(parts.size() + key.nodes.size());
  for (const NodeName& node : key.nodes) parts.push_back(node.text);
  return {fmt::format("j{}-{}", key.job, short_hash(parts))};
}

std::string ownership_mark(std::string_view cluster, std::string_view nodeset) {
  return fmt::format("slurm-flex-start cluster={} nodeset={}", cluster, nodeset);
}

std::uint32_t described_number(std::string_view description, std::string_view key) {
  const std::string wanted = fmt::format(" {}=", key);
  const std::size_t at = description.rfind(wanted);
  if (at == std::string_view::npos) return 0;
  const std::string_view text = description.substr(at + wanted.size());
  std::uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool is_owned(std::string_view description, std::string_view cluster, std::string_view nodeset) {
  const std::string mark = ownership_mark(cluster, nodeset);
  if (description.substr(0, mark.size()) != mark) return false;
  return description.size() == mark.size() || description[mark.size()] == ' ';
}

std::optional<std::string> owned_nodeset(std::string_view description, std::string_view cluster) {
  const std::string mark = ownership_mark(cluster, "");
  if (!description.starts_with(mark)) return std::nullopt;
  description.remove_prefix(mark.size());
  const std::string_view nodeset = description.substr(0, description.find(' '));
  if (nodeset.empty()) return std::nullopt;
  return std::string(nodeset);
}

}  // namespace flex

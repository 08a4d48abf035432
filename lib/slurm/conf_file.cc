// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/conf_file.h"

#include "lib/core/descriptor.h"
#include "lib/core/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <unistd.h>
#include <utility>

namespace flex {
namespace {

/// Files in files, and lines in all: a file that includes itself must end, too.
constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxLines = 200000;
constexpr std::size_t kMaxFile = std::size_t{16} << 20U;

constexpr std::string_view kSpace = " \t\r\n\v\f";

bool is_space(char c) {
  return kSpace.find(c) != std::string_view::npos;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_key(char c) {
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c == '_' || c == '.';
}

bool same_text(std::string_view one, std::string_view other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](char a, char b) {
    return lower(a) == lower(b);
  });
}

/// Without what follows a '#' that is not escaped.
std::string_view without_comment(std::string_view line) {
  bool is_escaped = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && !is_escaped) return line.substr(0, i);
    is_escaped = line[i] == '\\' && !is_escaped;
  }
  return line;
}

/// The text before an odd number of backslashes at the end; nothing where the line ends here.
std::optional<std::string_view> continued(std::string_view line) {
  const std::size_t last = line.find_last_not_of(kSpace);
  if (last == std::string_view::npos || line[last] != '\\') return std::nullopt;
  std::size_t slashes = 0;
  while (slashes <= last && line[last - slashes] == '\\') ++slashes;
  return slashes % 2 == 1 ? std::optional(line.substr(0, last)) : std::nullopt;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && ++i == text.size()) break;
    out += text[i];
  }
  return out;
}

std::string_view take_space(std::string_view text) {
  const std::size_t from = text.find_first_not_of(kSpace);
  return from == std::string_view::npos ? std::string_view{} : text.substr(from);
}

struct Pair {
  std::string key{};
  std::string value{};
};

/// The next "Key=Value" or "Key+=Value" of the line, which then begins behind it.
std::optional<Pair> take_pair(std::string_view& line) {
  std::string_view rest = take_space(line);
  const auto key_end = std::find_if_not(rest.begin(), rest.end(), is_key);
  Pair pair{.key = std::string(rest.begin(), key_end)};
  if (pair.key.empty()) return std::nullopt;
  rest = take_space(rest.substr(pair.key.size()));
  if (rest.size() > 1 && rest[1] == '=' && std::string_view("+-*/").find(rest[0]) != rest.npos)
    rest.remove_prefix(1);
  if (rest.empty() || rest[0] != '=') return std::nullopt;
  rest = take_space(rest.substr(1));
  if (!rest.empty() && rest[0] == '"') {
    const std::size_t end = rest.find('"', 1);
    if (end == std::string_view::npos) return std::nullopt;
    pair.value = rest.substr(1, end - 1);
    line = rest.substr(end + 1);
    return pair;
  }
  // Without a value it is a mistake to Slurm, too; "" is one.
  if (rest.empty()) return std::nullopt;
  const std::size_t end = std::min(rest.find_first_of(kSpace), rest.size());
  pair.value = rest.substr(0, end);
  line = rest.substr(end);
  return pair;
}

/// "Include FILE": the file's name; nothing for any other line.
std::optional<std::string> included_file(std::string_view line) {
  constexpr std::string_view kWord = "include";
  const std::string_view text = take_space(line);
  if (text.size() <= kWord.size() || !same_text(text.substr(0, kWord.size()), kWord) ||
      !is_space(text[kWord.size()]))
    return std::nullopt;
  const std::string_view name = take_space(text.substr(kWord.size()));
  const std::size_t end = std::min(name.find_first_of(kSpace), name.size());
  if (name.empty() || name[0] == '=') return std::nullopt;
  return std::string(name.substr(0, end));
}

class Parser {
 public:
  Parser(SlurmConf& conf, const ReadInclude& read) : conf_(conf), read_(read) {}

  void parse(std::string_view text, const std::string& file, int depth) {
    int number = 0;
    while (!text.empty()) {
      ConfPlace place{file, number + 1};
      std::string line;
      bool has_more = true;
      while (has_more && !text.empty()) {
        if (++lines_ > kMaxLines) return complain(place, "too many lines");
        ++number;
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view piece = without_comment(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        const auto begun = continued(piece);
        has_more = begun.has_value();
        line += begun.value_or(piece);
      }
      take(unescaped(line), place, depth);
    }
  }

 private:
  void complain(const ConfPlace& place, std::string what) {
    conf_.problems.push_back({place, std::move(what)});
  }

  void take(std::string_view line, const ConfPlace& place, int depth) {
    if (take_space(line).empty()) return;
    if (const auto name = included_file(line)) return include(*name, place, depth);
    std::vector<Pair> pairs;
    while (auto pair = take_pair(line)) pairs.push_back(*std::move(pair));
    const std::string_view rest = take_space(line);
    if (!rest.empty()) {
      const std::size_t end = std::min(rest.find_first_of(kSpace), rest.size());
      complain(place,
               fmt::format("'{}' is no Key=Value", rest.substr(0, std::min<std::size_t>(end, 80))));
    }
    if (!pairs.empty()) keep(pairs, place);
  }

  void keep(const std::vector<Pair>& pairs, const ConfPlace& place) {
    if (same_text(pairs[0].key, "NodeName")) return describe(conf_.nodes, nodes_, pairs, place);
    if (same_text(pairs[0].key, "PartitionName"))
      return describe(conf_.partitions, partitions_, pairs, place);
    if (same_text(pairs[0].key, "NodeSet")) return describe(conf_.nodesets, sets_, pairs, place);
    // Lines of things that are not looked at.
    for (const char* other : {"DownNodes", "FrontendName", "SwitchName"})
      if (same_text(pairs[0].key, other)) return;
    for (const Pair& pair : pairs) {
      if (same_text(pair.key, "ClusterName")) cluster_ = pair.value;
      conf_.settings.push_back({pair.key, pair.value, place});
    }
  }

  using Values = std::map<std::string, std::string>;

  static void describe(std::vector<ConfEntry>& entries,
                       Values& defaults,
                       const std::vector<Pair>& pairs,
                       const ConfPlace& place) {
    const bool is_default = same_text(pairs[0].value, "DEFAULT");
    Values values = defaults;
    for (std::size_t i = 1; i < pairs.size(); ++i)
      values[lower_case(pairs[i].key)] = pairs[i].value;
    if (is_default)
      defaults = std::move(values);
    else
      entries.push_back({pairs[0].value, std::move(values), place});
  }

  void include(std::string name, const ConfPlace& place, int depth) {
    // %c is the cluster's name.
    for (std::size_t at = name.find("%c"); at != std::string::npos; at = name.find("%c", at)) {
      name.replace(at, 2, cluster_);
      at += cluster_.size();
    }
    // A relative name is one of the directory of the file that includes it.
    if (!name.starts_with('/')) name = place.file.substr(0, place.file.rfind('/') + 1) + name;
    if (depth >= kMaxDepth) return complain(place, "too many files that include each other");
    const auto text = read_(name);
    if (!text) return complain(place, text.error().what);
    parse(*text, name, depth + 1);
  }

  SlurmConf& conf_;
  const ReadInclude& read_;
  std::string cluster_{};
  Values nodes_{};
  Values partitions_{};
  Values sets_{};
  std::size_t lines_ = 0;
};

Result<std::string> read_conf(const std::string& path) {
  const auto failed = [&path] {
    return Error{ErrorKind::Invalid, fmt::format("cannot read {}: {}", path, std::strerror(errno))};
  };
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  if (file.get() < 0) return failed();
  std::string text;
  std::array<char, 16384> buffer{};
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed();
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > kMaxFile)
      return Error{ErrorKind::Invalid, fmt::format("{} is too large", path)};
  }
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (same_text(list.substr(0, end), word)) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

std::string ConfEntry::get(std::string_view key) const {
  const auto found = more.find(lower_case(key));
  return found == more.end() ? std::string{} : found->second;
}

bool ConfEntry::has(std::string_view key) const {
  return more.contains(lower_case(key));
}

const ConfSetting* SlurmConf::find(std::string_view key) const {
  const auto found = std::find_if(settings.rbegin(), settings.rend(), [key](const auto& setting) {
    return same_text(setting.key, key);
  });
  return found == settings.rend() ? nullptr : &*found;
}

std::string SlurmConf::get(std::string_view key) const {
  const ConfSetting* const setting = find(key);
  return setting == nullptr ? std::string{} : setting->value;
}

ConfPlace SlurmConf::place_of(std::string_view key) const {
  const ConfSetting* const setting = find(key);
  return setting == nullptr ? ConfPlace{file, 0} : setting->place;
}

SlurmConf parse_slurm_conf(std::string_view text,
                           const std::string& file,
                           const ReadInclude& read) {
  SlurmConf conf{.file = file};
  Parser(conf, read).parse(text, file, 0);
  return conf;
}

Result<SlurmConf> load_slurm_conf(const std::string& path) {
  const auto text = read_conf(path);
  if (!text) return text.error();
  return parse_slurm_conf(*text, path, read_conf);
}

std::string find_slurm_conf() {
  const std::string named = environment("SLURM_CONF");
  if (!named.empty()) return named;
  for (const char* path : {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"})
    if (::access(path, R_OK) == 0) return path;
  return {};
}

}  // namespace flex

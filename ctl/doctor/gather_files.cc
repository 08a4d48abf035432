// SPDX-License-Identifier: GPL-2.0-or-later
// slurm.conf, plugstack.conf, flex-start.yaml, the sweeper's directory.
#include "ctl/doctor/gather.h"
#include "lib/config/tree.h"
#include "lib/core/state_file.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace flex::doctor {
namespace {

constexpr std::size_t kMostText = std::size_t{1} << 20U;

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// Keys of maps, each with its line.
void note_lines(const TreeNode& node,
                const std::string& prefix,
                std::map<std::string, int>& lines) {
  if (node.kind != TreeNode::Kind::Map) return;
  for (std::size_t i = 0; i < node.keys.size() && i < node.items.size(); ++i) {
    const std::string key = prefix.empty() ? node.keys[i].text : prefix + "." + node.keys[i].text;
    lines.emplace(key, node.keys[i].mark.line);
    note_lines(node.items[i], key, lines);
  }
}

void expand_nodes(SlurmFacts& slurm) {
  for (const ConfEntry& entry : slurm.conf->nodes) {
    const auto names = expand_hostlist(entry.name);
    if (!names) {
      slurm.bad_lists.push_back(
          {entry.place, fmt::format("NodeName={}: {}", entry.name, names.error().what)});
      continue;
    }
    std::string state = entry.get("State");
    for (char& c : state) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    for (const NodeName& name : *names) slurm.nodes[name] = {state, entry.place};
  }
  for (const ConfEntry& entry : slurm.conf->partitions)
    if (const auto names = expand_hostlist(entry.get("Nodes")); !names)
      slurm.bad_lists.push_back(
          {entry.place, fmt::format("Nodes={}: {}", entry.get("Nodes"), names.error().what)});
}

void find_user(SlurmFacts& slurm) {
  slurm.slurm_user_name = slurm.conf->get("SlurmUser");
  if (slurm.slurm_user_name.empty()) slurm.slurm_user_name = "root";
  // "name(id)" and a bare number are taken by Slurm, too.
  uid_t id = 0;
  const std::string& name = slurm.slurm_user_name;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  const bool is_number = error == std::errc{} && end == name.data() + name.size();
  if (is_number) slurm.slurm_user = id;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
  const passwd* const account = is_number ? ::getpwuid(id) : ::getpwnam(name.c_str());
  if (account == nullptr) return;
  slurm.slurm_user = account->pw_uid;
  slurm.slurm_user_home = account->pw_dir;
  int count = 256;
  slurm.slurm_user_groups.resize(static_cast<std::size_t>(count));
  if (::getgrouplist(account->pw_name, account->pw_gid, slurm.slurm_user_groups.data(), &count) < 0)
    count = 256;
  slurm.slurm_user_groups.resize(static_cast<std::size_t>(count));
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t from = line.find_first_not_of(" \t\r");
    if (from == std::string_view::npos || line[from] == '#') return words;
    line.remove_prefix(from);
    const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

void read_plugstack(SlurmFacts& slurm) {
  SlurmFacts::Plugin& plugin = slurm.plugin;
  plugin.file = slurm.conf->get("PlugStackConfig");
  if (plugin.file.empty()) plugin.file = directory_of(slurm.file) + "/plugstack.conf";
  plugin.on_disk = look_at(plugin.file);
  const auto text = read_small_file(plugin.file, kMostText);
  plugin.has_file = text.has_value();
  if (!text) return;
  int number = 0;
  std::string_view rest = *text;
  while (!rest.empty()) {
    ++number;
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const auto words = words_of(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (words.size() < 2 || !words[1].ends_with("spank_flex_start.so")) continue;
    plugin.line = number;
    plugin.is_required = lower_case(words[0]) == "required";
    if (words[1].starts_with('/')) plugin.so = look_at(words[1]);
  }
}

/// When a sweeper took the lock that it holds now. Asked of the kernel: to try the lock would be in
/// the way of one that is just starting.
std::optional<TimePoint> lock_time(const std::string& path) {
  struct stat info {};

  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  std::ifstream locks("/proc/locks");
  std::string line;
  const std::string mark = fmt::format(":{} ", info.st_ino);
  while (std::getline(locks, line))
    if (line.find("FLOCK") != std::string::npos && line.find(mark) != std::string::npos)
      return TimePoint{Seconds{info.st_mtim.tv_sec}};
  return std::nullopt;
}

}  // namespace

FileFacts look_at(const std::string& path) {
  FileFacts facts{.path = path};

  struct stat info {};

  if (path.empty() || ::stat(path.c_str(), &info) != 0) {
    facts.error = path.empty() ? 0 : errno;
    return facts;
  }
  facts.exists = true;
  facts.is_directory = S_ISDIR(info.st_mode);
  facts.is_file = S_ISREG(info.st_mode);
  facts.may_be_read = ::access(path.c_str(), facts.is_directory ? R_OK | X_OK : R_OK) == 0;
  facts.owner = info.st_uid;
  facts.group = info.st_gid;
  facts.mode = info.st_mode & 07777U;
  char* const real = ::realpath(path.c_str(), nullptr);
  if (real != nullptr) {
    const std::string_view name = real;
    facts.real_name = name.substr(name.rfind('/') + 1);
    std::free(real);
  }
  return facts;
}

void gather_slurm_conf(Facts& facts) {
  if (char* const own = ::realpath("/proc/self/exe", nullptr); own != nullptr) {
    facts.program_dir = directory_of(own);
    std::free(own);
  }
  SlurmFacts& slurm = facts.slurm;
  slurm.library_version = slurm_library_version();
  slurm.file = find_slurm_conf();
  if (slurm.file.empty()) {
    slurm.conf_error = "no slurm.conf found";
    return;
  }
  auto conf = load_slurm_conf(slurm.file);
  if (!conf) {
    slurm.conf_error = conf.error().what;
    return;
  }
  slurm.conf = *std::move(conf);
  find_user(slurm);
  expand_nodes(slurm);
  for (const char* key : {"ResumeProgram", "SuspendProgram", "ResumeFailProgram"}) {
    const std::string path = slurm.conf->get(key);
    if (!path.empty()) slurm.programs[key] = look_at(path);
  }
  read_plugstack(slurm);
}

void gather_yaml(const std::string& file, Facts& facts) {
  YamlFacts& yaml = facts.yaml;
  yaml.file = file;
  yaml.on_disk = look_at(file);
  yaml.loaded = load_config(file, facts.slurm.slurm_user);
  const auto text = read_small_file(file, kMaxConfigSize);
  if (!text) return;
  Problems ignored(file);
  if (const auto tree = parse_tree(*text, ignored)) note_lines(*tree, {}, yaml.lines);
}

std::map<std::string, std::string> parse_environment(std::string_view text) {
  std::map<std::string, std::string> values;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::size_t sign = line.find('=');
    if (line.empty() || line[0] == '#' || line[0] == ';' || sign == std::string_view::npos)
      continue;
    std::string_view value = line.substr(sign + 1);
    while (!value.empty() && std::string_view(" \t\r").find(value.back()) != value.npos)
      value.remove_suffix(1);
    const bool is_quoted = value.size() > 1 && (value.front() == '"' || value.front() == '\'') &&
                           value.front() == value.back();
    if (is_quoted) value = value.substr(1, value.size() - 2);
    values.insert_or_assign(std::string(line.substr(0, sign)), std::string(value));
  }
  return values;
}

void gather_unit(Facts& facts) {
  if (const auto text = read_small_file("/etc/default/flex-sweeper", kMostText))
    facts.unit_environment = parse_environment(*text);
}

void gather_state(Facts& facts) {
  StateFacts& state = facts.state;
  std::string path = facts.yaml.config().sweeper.state_dir;
  if (path.empty() && facts.slurm.running && !facts.slurm.running->state_save_location.empty())
    path = facts.slurm.running->state_save_location + "/flex-start";
  if (path.empty()) return;
  state.was_looked_at = true;
  state.directory = look_at(path);
  state.parent = look_at(directory_of(path));
  state.at_work_since = lock_time(path + "/sweeper.lock");
  const auto text = read_small_file(path + "/heartbeat", 100);
  if (!text) return;
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  if (error == std::errc{}) state.heartbeat = TimePoint{Seconds{seconds}};
}

}  // namespace flex::doctor

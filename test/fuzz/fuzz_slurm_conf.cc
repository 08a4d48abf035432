// SPDX-License-Identifier: GPL-2.0-or-later
// Any text as slurm.conf, which may include itself: every text is read to its end.
#include "lib/slurm/conf_file.h"
#include "test/fuzz/check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

using flex::fuzz::check;

namespace {

bool is_lower(const std::string& key) {
  return key == flex::lower_case(key);
}

void check_entries(const std::vector<flex::ConfEntry>& entries) {
  for (const flex::ConfEntry& entry : entries) {
    check(entry.place.line > 0, "an entry has a line");
    for (const auto& [key, value] : entry.more) {
      check(is_lower(key), "keys of entries are in lower case");
      check(entry.get(key) == value, "a key is found");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Half of it is the file that the other half may include.
  const std::string_view inner = text.substr(text.size() / 2);
  int reads = 0;
  const auto read = [&](const std::string& path) -> flex::Result<std::string> {
    if (++reads > 1000 || path.size() % 2 == 1)
      return flex::Error{flex::ErrorKind::Invalid, "cannot read " + path};
    return std::string(inner);
  };
  const flex::SlurmConf conf = flex::parse_slurm_conf(text, "/etc/slurm/slurm.conf", read);
  const auto lines = std::count(text.begin(), text.end(), '\n') + 1;
  for (const flex::ConfSetting& setting : conf.settings) {
    check(!setting.key.empty(), "a setting has a key");
    check(setting.place.line >= 1 && setting.place.line <= lines, "a setting has its line");
    check(conf.find(setting.key) != nullptr, "a setting is found");
  }
  check_entries(conf.nodes);
  check_entries(conf.partitions);
  check_entries(conf.nodesets);
  for (const flex::ConfProblem& problem : conf.problems)
    check(!problem.what.empty(), "a problem says what it is");
  return 0;
}

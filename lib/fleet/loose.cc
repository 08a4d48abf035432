// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/loose.h"

#include "lib/core/state_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <sstream>
#include <system_error>
#include <unistd.h>

namespace flex {

std::string loose_path(const std::string& state_dir) {
  return state_dir + "/loose";
}

Result<Done> write_loose_file(const std::string& state_dir, const NodesetNames& names) {
  const std::string path = loose_path(state_dir);
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  if (!text.empty()) return write_atomically(path, text);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return Done{};
  return Error{ErrorKind::Denied,
               fmt::format("{}: {}", path, std::generic_category().message(errno))};
}

NodesetNames load_loose(const std::string& state_dir) {
  constexpr std::size_t kMostText = std::size_t{1} << 20U;
  NodesetNames names;
  const auto text = read_small_file(loose_path(state_dir), kMostText);
  if (!text) return names;
  std::istringstream lines{*text};
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) names.insert(line);
  }
  return names;
}

}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
// Recorded replies under test/data/gce/.
#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace flex {

inline std::string recorded(const std::string& name) {
  std::ifstream file(std::string(TEST_DATA) + "/gce/" + name);
  if (!file) throw std::runtime_error("no recorded reply " + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace flex

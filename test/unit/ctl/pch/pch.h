// SPDX-License-Identifier: GPL-2.0-or-later
// Precompiled where meson is told to (-Db_pch=true): what most sources of this directory include.
// No source relies on it.

#include "sweeper/rules.h"
#include "test/support/catch.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

// SPDX-License-Identifier: GPL-2.0-or-later
// The status page: the parts in this directory as one file, made when we are built. It loads
// nothing but /status.json.
#pragma once

#include <string_view>

namespace flex {

[[nodiscard]] std::string_view status_page();

/// The page's own scripts, as a Content-Security-Policy names them: 'sha256-…' for each <script>.
/// So handlers in attributes (onclick=…) do not run: use addEventListener.
[[nodiscard]] std::string_view status_page_scripts();

}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
// The signed claim with which a service account's key asks for an access token.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"
#include "lib/gce/credentials.h"

#include <string>
#include <string_view>

namespace flex {

/// RFC 4648 base64url without padding.
[[nodiscard]] std::string base64url(std::string_view bytes);

/// RS256, good for an hour from `now`. Invalid: the private key is none.
[[nodiscard]] Result<std::string> make_jwt(const ServiceAccount& account, TimePoint now);

}  // namespace flex

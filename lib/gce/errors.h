// SPDX-License-Identifier: GPL-2.0-or-later
// What Google's errors mean for us: one table (pure).
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"

#include <string>
#include <string_view>

namespace flex {

/// An error as Google wrote it, whichever way it came: a failed call's `reason`, the code of an
/// operation's or a request's error.
struct Complaint {
  int http_status = 0;  ///< 0: not from a call
  std::string code{};   ///< "rateLimitExceeded", "QUOTA_EXCEEDED", …; may be empty
  std::string message{};
};

/// By code first (some with words of the message), then by HTTP status; Internal if neither says
/// anything.
[[nodiscard]] ErrorKind classify(const Complaint& complaint);

/// The zone can never serve this, whatever it is asked: another zone, machine type or way may. Such
/// an error is Invalid, too.
[[nodiscard]] bool is_of_zone(const Error& error);

/// "<message> (<code>, HTTP <status>)" in its class.
[[nodiscard]] Error to_error(const Complaint& complaint);
/// The same for an operation's, a request's or an instance's error.
[[nodiscard]] Error to_error(const ProviderError& error);

}  // namespace flex

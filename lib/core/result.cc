// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/result.h"

namespace flex {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Retry:
      return "retry";
    case ErrorKind::NoCapacity:
      return "no_capacity";
    case ErrorKind::Quota:
      return "quota";
    case ErrorKind::NotFound:
      return "not_found";
    case ErrorKind::AlreadyExists:
      return "already_exists";
    case ErrorKind::Precondition:
      return "precondition";
    case ErrorKind::Denied:
      return "denied";
    case ErrorKind::Invalid:
      return "invalid";
    case ErrorKind::Internal:
      return "internal";
  }
  return "unknown";
}

Error Error::in(std::string_view doing) && {
  what.insert(0, std::string(doing) + ": ");
  return std::move(*this);
}

Error Error::in(std::string_view doing) const& {
  Error copy = *this;
  return std::move(copy).in(doing);
}

}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
// Result<T>: a value or an Error. A subset of std::expected, which g++ 12 lacks in C++20.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace flex {

/// What the caller does next, not where the error came from.
enum class ErrorKind {
  Retry,          ///< passing trouble (429, 5xx, time-out, lost connection): try again later
  NoCapacity,     ///< stock-out: wait, or try elsewhere
  Quota,          ///< a quota is used up: wait, and tell which one
  NotFound,       ///< the thing is not there; success for a deletion
  AlreadyExists,  ///< the name is taken; success for an insertion under a name we chose
  Precondition,   ///< right call, wrong moment (CONDITION_NOT_MET): look again
  Denied,         ///< credentials or permissions: an admin must act
  Invalid,        ///< the request, the config or the input is wrong: never retry as it is
  Internal,       ///< a bug or an answer that makes no sense
};

std::string_view to_string(ErrorKind kind);

struct Error {
  ErrorKind kind = ErrorKind::Internal;
  std::string what;
  /// Stable code for tables, metrics and grep, e.g. "QUOTA_EXCEEDED"; may be empty.
  std::string code{};

  /// The same error with "doing: " in front.
  [[nodiscard]] Error in(std::string_view doing) &&;
  [[nodiscard]] Error in(std::string_view doing) const&;

  /// True if the same call may succeed later without anybody changing anything.
  [[nodiscard]] bool is_transient() const {
    return kind == ErrorKind::Retry || kind == ErrorKind::NoCapacity || kind == ErrorKind::Quota ||
           kind == ErrorKind::Precondition;
  }
};

/// The value of a Result that carries none.
using Done = std::monostate;

template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return value;` and `return Error{…};` are how functions end.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}

  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }

  explicit operator bool() const { return has_value(); }

  T& operator*() & { return *std::get_if<0>(&state_); }

  const T& operator*() const& { return *std::get_if<0>(&state_); }

  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }

  T* operator->() { return std::get_if<0>(&state_); }

  const T* operator->() const { return std::get_if<0>(&state_); }

  Error& error() & { return *std::get_if<1>(&state_); }

  const Error& error() const& { return *std::get_if<1>(&state_); }

  Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace flex

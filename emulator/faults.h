// SPDX-License-Identifier: GPL-2.0-or-later
// Faults to order: which call is hit by what, by count or by seeded chance.
#pragma once

#include "emulator/json.h"
#include "lib/core/result.h"

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace flex::emulator {

enum class FaultKind {
  LostReply,       ///< acts, then closes the connection without an answer
  Reset,           ///< closes the connection before acting
  HoldBefore,      ///< does nothing until the client has closed the connection
  HoldAfter,       ///< acts, then keeps the answer until the client has closed the connection
  Unavailable,     ///< 503
  TooMany,         ///< 429
  OperationError,  ///< the operation ends with an error
  RequestFailed,   ///< the resize request ends FAILED
  Latency,         ///< takes longer
};

struct Fault {
  std::uint64_t id = 0;
  std::string method{};  ///< "*": all
  FaultKind kind = FaultKind::Unavailable;
  std::optional<std::int64_t> count{};
  std::optional<double> probability{};
  std::int64_t after = 0;  ///< leaves this many alone first
  std::uint64_t seed = 1;
  std::string code{};
  std::string message{};
  std::int64_t retry_after = 1;
  double ms = 0;
  std::int64_t seen = 0;
  std::int64_t hits = 0;
  std::mt19937_64 random{};
};

/// What befalls one call.
struct FaultPlan {
  double latency_ms = 0;
  std::optional<Fault> fault{};
};

class Faults {
 public:
  /// Invalid: an unknown key or kind, a wrong type.
  [[nodiscard]] Result<std::uint64_t> add(const Json& json);
  [[nodiscard]] FaultPlan draw(const std::string& method);
  [[nodiscard]] Json list() const;

  void clear() { faults_.clear(); }

 private:
  std::vector<Fault> faults_{};
  std::uint64_t next_id_ = 0;
};

[[nodiscard]] std::string_view to_string(FaultKind kind);

}  // namespace flex::emulator

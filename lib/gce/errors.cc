// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>

namespace flex {
namespace {

struct Row {
  std::string_view code;
  std::string_view words;  ///< must be in the message; empty: any message
  ErrorKind kind;
};

/// Codes of calls (lowerCamel), of operations and requests (UPPER_CASE), of OAuth (lower_case). The
/// first row that fits counts: rows with words come before the one without.
constexpr Row kRows[] = {
    // Capacity.
    {"ZONE_RESOURCE_POOL_EXHAUSTED", "", ErrorKind::NoCapacity},
    {"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "", ErrorKind::NoCapacity},
    {"RESOURCE_POOL_EXHAUSTED", "", ErrorKind::NoCapacity},
    {"RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "", ErrorKind::NoCapacity},
    {"REGION_RESOURCE_POOL_EXHAUSTED", "", ErrorKind::NoCapacity},
    {"resourcePoolExhausted", "", ErrorKind::NoCapacity},
    {"insufficientCapacity", "", ErrorKind::NoCapacity},
    {"VM_MIN_COUNT_NOT_REACHED", "", ErrorKind::NoCapacity},
    {"STOCKOUT", "", ErrorKind::NoCapacity},
    {"LIMIT_EXCEEDED", "allocated time", ErrorKind::NoCapacity},
    // Quota: waiting helps once something is given back or raised.
    {"LIMIT_EXCEEDED", "", ErrorKind::Quota},
    {"limitExceeded", "", ErrorKind::Quota},
    {"QUOTA_EXCEEDED", "", ErrorKind::Quota},
    {"quotaExceeded", "", ErrorKind::Quota},
    {"dailyLimitExceeded", "", ErrorKind::Quota},
    {"IP_SPACE_EXHAUSTED", "", ErrorKind::Quota},
    {"IP_SPACE_EXHAUSTED_WITH_DETAILS", "", ErrorKind::Quota},
    // Passing trouble. Too many calls a minute comes as 403.
    {"rateLimitExceeded", "", ErrorKind::Retry},
    {"userRateLimitExceeded", "", ErrorKind::Retry},
    {"concurrentLimitExceeded", "", ErrorKind::Retry},
    {"resourceOperationRateExceeded", "", ErrorKind::Retry},
    {"RATE_LIMIT_EXCEEDED", "", ErrorKind::Retry},
    {"RESOURCE_OPERATION_RATE_EXCEEDED", "", ErrorKind::Retry},
    {"backendError", "", ErrorKind::Retry},
    {"internalError", "", ErrorKind::Retry},
    {"INTERNAL_ERROR", "", ErrorKind::Retry},
    {"INTERNAL", "", ErrorKind::Retry},
    {"UNAVAILABLE", "", ErrorKind::Retry},
    {"SERVICE_UNAVAILABLE", "", ErrorKind::Retry},
    {"DEADLINE_EXCEEDED", "", ErrorKind::Retry},
    {"ABORTED", "", ErrorKind::Retry},
    {"TIMEOUT", "", ErrorKind::Retry},
    // Right call, wrong moment. An organisation's constraint comes under the same code.
    {"CONDITION_NOT_MET", "constraints/", ErrorKind::Denied},
    {"conditionNotMet", "constraints/", ErrorKind::Denied},
    {"CONDITION_NOT_MET", "", ErrorKind::Precondition},
    {"conditionNotMet", "", ErrorKind::Precondition},
    {"FAILED_PRECONDITION", "", ErrorKind::Precondition},
    {"failedPrecondition", "", ErrorKind::Precondition},
    {"resourceNotReady", "", ErrorKind::Precondition},
    {"RESOURCE_NOT_READY", "", ErrorKind::Precondition},
    {"resourceInUseByAnotherResource", "", ErrorKind::Precondition},
    {"RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "", ErrorKind::Precondition},
    {"RESOURCE_IN_USE", "", ErrorKind::Precondition},
    {"OPERATION_CANCELED_BY_USER", "", ErrorKind::Precondition},
    {"OPERATION_IN_PROGRESS", "", ErrorKind::Precondition},
    // There, or not there.
    {"alreadyExists", "", ErrorKind::AlreadyExists},
    {"ALREADY_EXISTS", "", ErrorKind::AlreadyExists},
    {"RESOURCE_ALREADY_EXISTS", "", ErrorKind::AlreadyExists},
    {"notFound", "", ErrorKind::NotFound},
    {"NOT_FOUND", "", ErrorKind::NotFound},
    {"RESOURCE_NOT_FOUND", "", ErrorKind::NotFound},
    // An admin must act.
    {"PERMISSION_DENIED", "", ErrorKind::Denied},
    {"PERMISSIONS_ERROR", "", ErrorKind::Denied},
    {"forbidden", "", ErrorKind::Denied},
    {"insufficientPermissions", "", ErrorKind::Denied},
    {"accessNotConfigured", "", ErrorKind::Denied},
    {"SERVICE_DISABLED", "", ErrorKind::Denied},
    {"authError", "", ErrorKind::Denied},
    {"required", "Login", ErrorKind::Denied},
    {"UNAUTHENTICATED", "", ErrorKind::Denied},
    {"ACCESS_TOKEN_SCOPE_INSUFFICIENT", "", ErrorKind::Denied},
    {"invalid_grant", "", ErrorKind::Denied},
    {"invalid_client", "", ErrorKind::Denied},
    {"unauthorized_client", "", ErrorKind::Denied},
    {"access_denied", "", ErrorKind::Denied},
    // Never right as it is.
    {"INVALID_ARGUMENT", "", ErrorKind::Invalid},
    {"INVALID_USAGE", "", ErrorKind::Invalid},
    {"INVALID_FIELD_VALUE", "", ErrorKind::Invalid},
    {"UNSUPPORTED_OPERATION", "", ErrorKind::Invalid},
    {"INVALID_MACHINE_TYPE", "", ErrorKind::Invalid},
    {"INVALID_GPU_TYPE", "", ErrorKind::Invalid},
    {"AGGREGATE_RESERVATION_NOT_EXIST", "", ErrorKind::Invalid},
    {"QUEUING_INFEASIBLE_NO_CAPACITY", "", ErrorKind::Invalid},
    // A VM of the name is in the group already: another request asked for it.
    {"invalid", "already exists", ErrorKind::Precondition},
    {"invalid", "", ErrorKind::Invalid},
    {"required", "", ErrorKind::Invalid},
    {"badRequest", "", ErrorKind::Invalid},
    {"parseError", "", ErrorKind::Invalid},
    {"invalidParameter", "", ErrorKind::Invalid},
};

ErrorKind by_status(int status) {
  switch (status) {
    case 401:
    case 403:
    case 407:
      return ErrorKind::Denied;
    case 404:
    case 410:
      return ErrorKind::NotFound;
    case 408:
    case 425:
    case 429:
      return ErrorKind::Retry;
    case 409:
      return ErrorKind::AlreadyExists;
    case 412:
      return ErrorKind::Precondition;
    case 501:
    case 505:
      return ErrorKind::Invalid;
    default:
      break;
  }
  if (status >= 400 && status < 500) return ErrorKind::Invalid;
  if (status >= 500 && status < 600) return ErrorKind::Retry;
  return ErrorKind::Internal;
}

/// Google's texts can be long and have lines; one line of a log has to hold them.
std::string one_line(std::string_view text) {
  static constexpr std::size_t kLimit = 1000;
  std::string out(text.substr(0, kLimit));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  if (text.size() > kLimit) out += "…";
  return out;
}

}  // namespace

bool is_of_zone(const Error& error) {
  if (error.kind != ErrorKind::Invalid) return false;
  constexpr std::string_view kCodes[] = {"QUEUING_INFEASIBLE_NO_CAPACITY",
                                         "INVALID_MACHINE_TYPE",
                                         "INVALID_GPU_TYPE",
                                         "AGGREGATE_RESERVATION_NOT_EXIST"};
  // Of calls and of operations whose code says nothing of it.
  constexpr std::string_view kWords[] = {"not supported in this zone",
                                         "not supported in zone",
                                         "not supported in the zone",
                                         "does not exist in zone",
                                         "does not exist in this zone",
                                         "not available in zone",
                                         "not available in this zone"};
  const auto is_code = [&](std::string_view code) { return error.code == code; };
  const auto is_said = [&](std::string_view words) {
    return error.what.find(words) != std::string::npos;
  };
  return std::any_of(std::begin(kCodes), std::end(kCodes), is_code) ||
         std::any_of(std::begin(kWords), std::end(kWords), is_said);
}

ErrorKind classify(const Complaint& complaint) {
  for (const Row& row : kRows) {
    if (complaint.code == row.code && complaint.message.find(row.words) != std::string::npos)
      return row.kind;
  }
  return by_status(complaint.http_status);
}

Error to_error(const Complaint& complaint) {
  std::string what = one_line(complaint.message);
  if (what.empty()) what = "no explanation given";
  std::string source = complaint.code;
  if (complaint.http_status != 0) {
    if (!source.empty()) source += ", ";
    source += fmt::format("HTTP {}", complaint.http_status);
  }
  if (!source.empty()) what += fmt::format(" ({})", source);
  return {classify(complaint), std::move(what), complaint.code};
}

Error to_error(const ProviderError& error) {
  Complaint complaint{.code = error.code, .message = error.message};
  // wire.cc writes an error that is only an HTTP status this way.
  static constexpr std::string_view kHttp = "HTTP_";
  if (error.code.starts_with(kHttp)) {
    const char* end = error.code.data() + error.code.size();
    int status = 0;
    if (std::from_chars(error.code.data() + kHttp.size(), end, status).ptr == end)
      complaint.http_status = status;
  }
  return to_error(complaint);
}

}  // namespace flex

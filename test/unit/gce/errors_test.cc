// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/errors.h"

#include "test/support/catch.h"

#include <tuple>

using namespace flex;

TEST_CASE("errors: classify puts a complaint in its class", "[gce]") {
  using K = ErrorKind;
  const auto [status, code, message, kind] =
      GENERATE(table<int, std::string, std::string, ErrorKind>({
          {403, "rateLimitExceeded", "", K::Retry},
          {403, "quotaExceeded", "", K::Quota},
          {0, "QUOTA_EXCEEDED", "Quota 'ACTIVE_RESIZE_REQUESTS' exceeded", K::Quota},
          {403, "forbidden", "", K::Denied},
          {403, "", "", K::Denied},
          {401, "authError", "", K::Denied},
          {401, "", "", K::Denied},
          {404, "notFound", "", K::NotFound},
          {404, "", "", K::NotFound},
          {409, "alreadyExists", "", K::AlreadyExists},
          {409, "", "", K::AlreadyExists},
          {409, "resourceInUseByAnotherResource", "", K::Precondition},
          {400, "resourceInUseByAnotherResource", "", K::Precondition},
          {0, "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "", K::Precondition},
          {400, "invalid", "Instance 'n1' already exists in the group.", K::Precondition},
          {0, "RESOURCE_ALREADY_EXISTS", "", K::AlreadyExists},
          {412, "conditionNotMet", "", K::Precondition},
          {412, "", "", K::Precondition},
          {400, "conditionNotMet", "", K::Precondition},
          {400, "resourceNotReady", "", K::Precondition},
          {0, "CONDITION_NOT_MET", "request is not ACCEPTED", K::Precondition},
          {0, "CONDITION_NOT_MET", "constraints/compute.vmExternalIpAccess", K::Denied},
          {400, "invalid", "", K::Invalid},
          {400, "", "", K::Invalid},
          {413, "", "", K::Invalid},
          {0, "INVALID_ARGUMENT", "", K::Invalid},
          {0, "UNSUPPORTED_OPERATION", "", K::Invalid},
          {0, "INVALID_MACHINE_TYPE", "", K::Invalid},
          {0, "INVALID_GPU_TYPE", "", K::Invalid},
          {0, "QUEUING_INFEASIBLE_NO_CAPACITY", "", K::Invalid},
          {0, "AGGREGATE_RESERVATION_NOT_EXIST", "", K::Invalid},
          {0, "ZONE_RESOURCE_POOL_EXHAUSTED", "", K::NoCapacity},
          {0, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "", K::NoCapacity},
          {0, "RESOURCE_POOL_EXHAUSTED", "", K::NoCapacity},
          {0, "REGION_RESOURCE_POOL_EXHAUSTED", "", K::NoCapacity},
          {0, "VM_MIN_COUNT_NOT_REACHED", "", K::NoCapacity},
          {503, "resourcePoolExhausted", "", K::NoCapacity},
          {403, "insufficientCapacity", "", K::NoCapacity},
          {0, "LIMIT_EXCEEDED", "could not provision in the allocated time.", K::NoCapacity},
          {0, "LIMIT_EXCEEDED", "Exceeded limit 'MAX_INSTANCES_IN_INSTANCE_GROUP'", K::Quota},
          {0, "IP_SPACE_EXHAUSTED", "", K::Quota},
          {0, "PERMISSIONS_ERROR", "", K::Denied},
          {0, "PERMISSION_DENIED", "", K::Denied},
          {0, "RESOURCE_NOT_FOUND", "", K::NotFound},
          {0, "INTERNAL_ERROR", "", K::Retry},
          {408, "", "", K::Retry},
          {429, "", "", K::Retry},
          {429, "somethingNew", "", K::Retry},
          {500, "", "", K::Retry},
          {502, "", "", K::Retry},
          {503, "backendError", "", K::Retry},
          {504, "", "", K::Retry},
          {501, "", "", K::Invalid},
          {302, "", "", K::Internal},
          {0, "SOMETHING_NEW", "", K::Internal},
          {0, "", "", K::Internal},
      }));
  CAPTURE(status, code, message);
  CHECK(to_string(classify({status, code, message})) == to_string(kind));
}

TEST_CASE("errors: the text has message, code and status on one line", "[gce]") {
  const Error error = to_error(Complaint{403, "quotaExceeded", "Quota\n'X'\texceeded"});
  CHECK(error.what == "Quota 'X' exceeded (quotaExceeded, HTTP 403)");
  CHECK(error.code == "quotaExceeded");
  CHECK(to_error(Complaint{503, "", ""}).what == "no explanation given (HTTP 503)");
  CHECK(to_error(Complaint{0, "", std::string(5000, 'x')}).what.size() < 1100);
}

TEST_CASE("errors: an operation's error that is only a status is classified by it", "[gce]") {
  CHECK(to_error(ProviderError{.code = "HTTP_503"}).kind == ErrorKind::Retry);
  CHECK(to_error(ProviderError{.code = "HTTP_404"}).kind == ErrorKind::NotFound);
  CHECK(to_error(ProviderError{.code = "HTTP_x"}).kind == ErrorKind::Internal);
  CHECK(to_error(ProviderError{.code = "RESOURCE_POOL_EXHAUSTED"}).kind == ErrorKind::NoCapacity);
}

TEST_CASE("errors: what only another zone can mend", "[gce]") {
  const auto is = [](const std::string& code, const std::string& message) {
    return is_of_zone(to_error(Complaint{.http_status = 400, .code = code, .message = message}));
  };
  CHECK(is("QUEUING_INFEASIBLE_NO_CAPACITY", ""));
  CHECK(is("INVALID_MACHINE_TYPE", ""));
  CHECK(is("INVALID_GPU_TYPE", ""));
  CHECK(is("AGGREGATE_RESERVATION_NOT_EXIST", ""));
  CHECK(is("invalid", "Machine type with name 'a3' does not exist in zone 'us-central1-b'."));
  CHECK(is("UNSUPPORTED_OPERATION", "It is not supported in this zone."));
  CHECK_FALSE(is("INVALID_ARGUMENT", "no such template"));
  CHECK_FALSE(is("PERMISSION_DENIED", "not supported in this zone"));
  CHECK_FALSE(is("ZONE_RESOURCE_POOL_EXHAUSTED", "not available in zone"));
}

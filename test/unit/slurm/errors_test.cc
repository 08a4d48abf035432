// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/errors.h"

#include "lib/slurm/libslurm_scheduler.h"
#include "test/support/catch.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <cerrno>
#include <string>

using namespace flex;

TEST_CASE("to_error: the kind says what to do next", "[slurm]") {
  const auto [number, kind, code] = GENERATE(table<int, ErrorKind, std::string>({
      {SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR,
       ErrorKind::Retry,
       "SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR"},
      {SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT, ErrorKind::Retry, "SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT"},
      {SLURM_PROTOCOL_AUTHENTICATION_ERROR,
       ErrorKind::Retry,
       "SLURM_PROTOCOL_AUTHENTICATION_ERROR"},
      {ESLURM_ACCESS_DENIED, ErrorKind::Denied, "ESLURM_ACCESS_DENIED"},
      {ESLURM_USER_ID_MISSING, ErrorKind::Denied, "ESLURM_USER_ID_MISSING"},
      {ESLURM_INVALID_JOB_ID, ErrorKind::NotFound, "ESLURM_INVALID_JOB_ID"},
      {ESLURM_INVALID_NODE_NAME, ErrorKind::NotFound, "ESLURM_INVALID_NODE_NAME"},
      {ESLURM_RESERVATION_INVALID, ErrorKind::NotFound, "ESLURM_RESERVATION_INVALID"},
      {ESLURM_RESERVATION_NAME_DUP, ErrorKind::AlreadyExists, "ESLURM_RESERVATION_NAME_DUP"},
      {ESLURM_BATCH_ONLY, ErrorKind::Precondition, "ESLURM_BATCH_ONLY"},
      {ESLURM_DISABLED, ErrorKind::Precondition, "ESLURM_DISABLED"},
      {ESLURM_ALREADY_DONE, ErrorKind::Precondition, "ESLURM_ALREADY_DONE"},
      {ESLURM_BAD_DIST, ErrorKind::Internal, "SLURM_2023"},
  }));
  const auto error = slurm::to_error(number, "loading jobs");
  CHECK(error.kind == kind);
  CHECK(error.code == code);
  CHECK_THAT(error.what, StartsWith("loading jobs: "));
  CHECK_THAT(error.what, EndsWith("(" + std::to_string(number) + ")"));
}

TEST_CASE("error_number: takes the number itself, or errno for -1", "[slurm]") {
  errno = ESLURM_DISABLED;
  CHECK(slurm::error_number(0) == 0);
  CHECK(slurm::error_number(ESLURM_BATCH_ONLY) == ESLURM_BATCH_ONLY);
  CHECK(slurm::error_number(-1) == ESLURM_DISABLED);
  errno = 0;
  CHECK(slurm::error_number(-1) != 0);
}

TEST_CASE("open_libslurm: refuses an slurm.conf that cannot be read, and lives on", "[slurm]") {
  const auto scheduler = open_libslurm("no/such/slurm.conf");
  REQUIRE_FALSE(scheduler);
  CHECK(scheduler.error().kind == ErrorKind::Invalid);
  CHECK_THAT(scheduler.error().what, ContainsSubstring("no/such/slurm.conf"));
  CHECK_THAT(scheduler.error().what, ContainsSubstring("SLURM_CONF"));
}

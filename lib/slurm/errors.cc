// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/errors.h"

#include <fmt/format.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

namespace flex::slurm {
namespace {

struct Row {
  int number;
  std::string_view name;
  ErrorKind kind;
};

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the name is wanted as text, too
#define FLEX_ROW(number, kind)       \
  Row {                              \
    number, #number, ErrorKind::kind \
  }

constexpr std::array kRows{
    FLEX_ROW(SLURM_COMMUNICATIONS_CONNECTION_ERROR, Retry),
    FLEX_ROW(SLURM_COMMUNICATIONS_SEND_ERROR, Retry),
    FLEX_ROW(SLURM_COMMUNICATIONS_RECEIVE_ERROR, Retry),
    FLEX_ROW(SLURM_COMMUNICATIONS_SHUTDOWN_ERROR, Retry),
    FLEX_ROW(SLURM_COMMUNICATIONS_MISSING_SOCKET_ERROR, Retry),
    FLEX_ROW(SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR, Retry),
    FLEX_ROW(SLURMCTLD_COMMUNICATIONS_SEND_ERROR, Retry),
    FLEX_ROW(SLURMCTLD_COMMUNICATIONS_RECEIVE_ERROR, Retry),
    FLEX_ROW(SLURMCTLD_COMMUNICATIONS_SHUTDOWN_ERROR, Retry),
    FLEX_ROW(ESLURM_PROTOCOL_INCOMPLETE_PACKET, Retry),
    FLEX_ROW(SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT, Retry),
    FLEX_ROW(SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT, Retry),
    FLEX_ROW(ESLURM_IN_STANDBY_MODE, Retry),
    FLEX_ROW(ESLURM_IN_STANDBY_USE_BACKUP, Retry),
    FLEX_ROW(SLURM_PROTOCOL_AUTHENTICATION_ERROR, Retry),  // munged is away, most often
    FLEX_ROW(ETIMEDOUT, Retry),
    FLEX_ROW(ECONNREFUSED, Retry),
    FLEX_ROW(ECONNRESET, Retry),
    FLEX_ROW(EPIPE, Retry),
    FLEX_ROW(EAGAIN, Retry),
    FLEX_ROW(EINTR, Retry),

    FLEX_ROW(ESLURM_ACCESS_DENIED, Denied),
    FLEX_ROW(ESLURM_USER_ID_MISSING, Denied),  // "Invalid user id": the job is somebody else's
    FLEX_ROW(ESLURM_AUTH_CRED_INVALID, Denied),
    FLEX_ROW(EPERM, Denied),
    FLEX_ROW(EACCES, Denied),

    FLEX_ROW(ESLURM_INVALID_JOB_ID, NotFound),
    FLEX_ROW(ESLURM_INVALID_NODE_NAME, NotFound),
    FLEX_ROW(ESLURM_INVALID_PARTITION_NAME, NotFound),
    FLEX_ROW(ESLURM_RESERVATION_INVALID, NotFound),

    FLEX_ROW(ESLURM_RESERVATION_NAME_DUP, AlreadyExists),

    FLEX_ROW(ESLURM_DISABLED, Precondition),
    FLEX_ROW(ESLURM_BATCH_ONLY, Precondition),
    FLEX_ROW(ESLURM_ALREADY_DONE, Precondition),
    FLEX_ROW(ESLURM_JOB_PENDING, Precondition),
    FLEX_ROW(ESLURM_JOB_FINISHED, Precondition),
    FLEX_ROW(ESLURM_JOB_NOT_RUNNING, Precondition),
    FLEX_ROW(ESLURM_JOB_NOT_PENDING, Precondition),
    FLEX_ROW(ESLURM_JOB_NOT_PENDING_NOR_RUNNING, Precondition),
    FLEX_ROW(ESLURM_TRANSITION_STATE_NO_UPDATE, Precondition),
    FLEX_ROW(ESLURM_INVALID_NODE_STATE, Precondition),
    FLEX_ROW(ESLURM_NOT_HET_JOB_LEADER, Precondition),
    FLEX_ROW(ESLURM_NOT_WHOLE_HET_JOB, Precondition),
    FLEX_ROW(ESLURM_NODES_BUSY, Precondition),
    FLEX_ROW(ESLURM_RESERVATION_BUSY, Precondition),
    FLEX_ROW(ESLURM_RESERVATION_OVERLAP, Precondition),

    FLEX_ROW(SLURM_PROTOCOL_VERSION_ERROR, Invalid),  // built for another release than slurmctld's
    FLEX_ROW(ESLURM_NOT_SUPPORTED, Invalid),
    FLEX_ROW(ESLURM_INVALID_TIME_VALUE, Invalid),
    FLEX_ROW(ESLURM_RESERVATION_EMPTY, Invalid),
};

#undef FLEX_ROW

}  // namespace

Error to_error(int number, std::string_view doing) {
  const auto* const row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.number == number; });
  const bool known = row != kRows.end();
  return {.kind = known ? row->kind : ErrorKind::Internal,
          .what = fmt::format("{}: {} ({})", doing, slurm_strerror(number), number),
          .code = known ? std::string(row->name) : fmt::format("SLURM_{}", number)};
}

int error_number(int return_code) {
  if (return_code >= 0) return return_code;
  return errno != 0 ? errno : SLURM_UNEXPECTED_MSG_ERROR;
}

Result<Done> to_result(int return_code, std::string_view doing) {
  const int number = error_number(return_code);
  if (number != 0) return to_error(number, doing);
  return Done{};
}

}  // namespace flex::slurm

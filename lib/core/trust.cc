// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/trust.h"

#include "lib/core/descriptor.h"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>

namespace flex {

namespace {

Error invalid(std::string what) {
  return {ErrorKind::Invalid, std::move(what)};
}

Result<Done> check(const struct stat& file,
                   const std::optional<uid_t>& slurm_user,
                   Readers readers) {
  if (!S_ISREG(file.st_mode)) return invalid("not a regular file");
  if ((file.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return invalid("group or others may write it: chmod go-w");
  if (readers == Readers::Owner && (file.st_mode & (S_IRGRP | S_IROTH)) != 0)
    return invalid("group or others may read it: chmod go-r");
  if (!is_trusted_owner(file.st_uid, slurm_user))
    return invalid(fmt::format(
        "it belongs to user {}, not to root or the user we run as ({})", file.st_uid, geteuid()));
  return Done{};
}

}  // namespace

Result<std::string> read_trusted_file(const std::string& path,
                                      const std::optional<uid_t>& slurm_user,
                                      std::size_t most,
                                      Readers readers) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (file.get() < 0) {
    const int why = errno;
    const bool is_absent = why == ENOENT || why == ENOTDIR || why == EACCES;
    return Error{is_absent ? ErrorKind::NotFound : ErrorKind::Invalid,
                 std::generic_category().message(why)};
  }

  struct stat status {};

  if (::fstat(file.get(), &status) != 0) return invalid("cannot stat it");
  if (auto checked = check(status, slurm_user, readers); !checked) return checked.error();
  // One buffer from the start, so that no copy of a key stays behind when it grows.
  std::string text(most + 1, '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return invalid("cannot read it");
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length > most) return invalid(fmt::format("it is larger than {} bytes", most));
  text.resize(length);
  return text;
}

}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
// Preloaded into slurmd, and so into slurmstepd: libslurm's calls for nodes do what
// FLEX_BAD_LIBSLURM says (hang, fail, exit), and each call is a line in the file
// FLEX_BAD_LIBSLURM_LOG.
#include <slurm/slurm.h>

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace {

void note(std::string_view line) {
  const char* log = std::getenv("FLEX_BAD_LIBSLURM_LOG");
  if (log == nullptr) return;
  const int file = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  if (::write(file, line.data(), line.size()) < 0) std::abort();
  ::close(file);
}

int misbehave(std::string_view line) {
  note(line);
  const char* kind = std::getenv("FLEX_BAD_LIBSLURM");
  if (kind != nullptr && std::string_view(kind) == "exit") std::exit(1);
  while (kind != nullptr && std::string_view(kind) == "hang") ::pause();
  errno = ECONNREFUSED;
  return SLURM_ERROR;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int slurm_load_node(time_t /*since*/, node_info_msg_t** nodes, uint16_t /*flags*/) {
  *nodes = nullptr;
  return misbehave("called slurm_load_node\n");
}

int slurm_load_node_single(node_info_msg_t** nodes, char* /*name*/, uint16_t /*flags*/) {
  *nodes = nullptr;
  return misbehave("called slurm_load_node_single\n");
}

}  // extern "C"
#pragma GCC visibility pop

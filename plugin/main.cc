// SPDX-License-Identifier: GPL-2.0-or-later
// What Slurm calls, in sbatch, salloc, srun, slurmd and slurmstepd. Nothing is thrown out of here,
// and on a node nothing fails: a job must run with or without us.
#include "plugin/arguments.h"
#include "plugin/lease.h"
#include "plugin/options.h"
#include "plugin/spank_api.h"

#include <exception>
#include <optional>
#include <span>

#pragma GCC visibility push(default)
extern "C" {
// Objects that are const are a file's own in C++ unless they were declared.
extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version;
extern const unsigned int spank_plugin_version;
SPANK_PLUGIN(flex_start, 1)
}
#pragma GCC visibility pop

namespace flex::plugin {

namespace {

/// From init_post_opt, which may ask, to user_init, which may tell.
std::optional<NodeLease>& found_lease() {
  static std::optional<NodeLease> lease;
  return lease;
}

/// Where a failure would cost somebody a job or a node.
bool must_not_fail() {
  const spank_context_t context = spank_context();
  return context == S_CTX_REMOTE || context == S_CTX_JOB_SCRIPT;
}

/// The callback's result, whatever happens in `work`.
template <class Work>
int guarded(const char* what, Work work) {
  bool is_done = false;
  try {
    is_done = work();
  } catch (const std::exception& error) {
    slurm_error("flex-start: %s: %s", what, error.what());
  } catch (...) {
    slurm_error("flex-start: %s failed", what);
  }
  // ESPANK_ERROR is positive, and Slurm takes only what is below zero for a failure.
  return is_done || must_not_fail() ? SLURM_SUCCESS : SLURM_ERROR;
}

/// Nothing if they are wrong.
std::optional<Arguments> arguments_of(int count, char** words) {
  auto arguments = parse_arguments({words, static_cast<std::size_t>(count)});
  if (!arguments) return std::nullopt;
  return *std::move(arguments);
}

bool init(spank_t spank, int count, char** words) {
  const auto arguments = parse_arguments({words, static_cast<std::size_t>(count)});
  if (!arguments) slurm_error("flex-start: plugstack.conf: %s", arguments.error().what.c_str());
  if (spank_context() == S_CTX_SLURMD) return arguments.has_value();
  // slurmstepd complains of options that it does not know.
  if (!arguments && !must_not_fail()) return false;
  return register_options(spank, arguments ? *arguments : Arguments{});
}

bool init_post_opt(spank_t spank, int count, char** words) {
  if (spank_context() != S_CTX_REMOTE) return pass_wish_on(spank);
  const auto arguments = arguments_of(count, words);
  found_lease() = arguments ? find_lease(spank, *arguments) : std::nullopt;
  return true;
}

bool user_init(spank_t spank) {
  clear_option_variables(spank);
  tell_tasks(spank, found_lease());
  return true;
}

bool job_epilog(spank_t spank, int count, char** words) {
  if (const auto arguments = arguments_of(count, words)) forget_job(spank, *arguments);
  return true;
}

}  // namespace

}  // namespace flex::plugin

using flex::plugin::guarded;

extern "C" int slurm_spank_init(spank_t spank, int ac, char* argv[]) {
  return guarded("init", [&] { return flex::plugin::init(spank, ac, argv); });
}

extern "C" int slurm_spank_init_post_opt(spank_t spank, int ac, char* argv[]) {
  return guarded("init_post_opt", [&] { return flex::plugin::init_post_opt(spank, ac, argv); });
}

extern "C" int slurm_spank_user_init(spank_t spank, int /*ac*/, char* /*argv*/[]) {
  return guarded("user_init", [&] { return flex::plugin::user_init(spank); });
}

extern "C" int slurm_spank_job_epilog(spank_t spank, int ac, char* argv[]) {
  return guarded("job_epilog", [&] { return flex::plugin::job_epilog(spank, ac, argv); });
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "test/unit/plugin/fake_spank.h"

#include <slurm/slurm.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

namespace flex::test {

namespace {

/// A plain number in the header.
constexpr auto kFine = static_cast<spank_err_t>(ESPANK_SUCCESS);

/// Shared with children.
struct Counts {
  int single = 0;
  int full = 0;
};

Counts& counts() {
  static auto* shared = static_cast<Counts*>(
      ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *shared;
}

std::unique_ptr<FakeSpank>& current() {
  static std::unique_ptr<FakeSpank> spank;
  return spank;
}

#ifdef FLEX_FAKE_PROGRAM_OPTIONS
/// By slurm_option_get.
std::set<void*>& handed_out() {
  static std::set<void*> blocks;
  return blocks;
}
#endif

/// What libslurm does instead of answering, if so.
int misbehave() {
  switch (current()->controller) {
    case Controller::Answers:
      return SLURM_SUCCESS;
    case Controller::Fails:
      return SLURM_ERROR;
    case Controller::Hangs:
      for (;;) ::pause();
    case Controller::Exits:
      std::exit(1);  // NOLINT(concurrency-mt-unsafe): as libslurm's fatal() does
  }
  return SLURM_ERROR;
}

node_info_msg_t* records(const std::map<std::string, std::string>& nodes) {
  auto* message = new node_info_msg_t{};
  message->node_array = new node_info_t[nodes.size()]{};
  for (const auto& [name, extra] : nodes) {
    node_info_t& node = message->node_array[message->record_count++];
    node.name = ::strdup(name.c_str());
    node.extra = extra.empty() ? nullptr : ::strdup(extra.c_str());
  }
  return message;
}

std::string printed(const char* format, va_list arguments) {
  std::array<char, 4096> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  return text.data();
}

}  // namespace

int FakeSpank::single_loads() const {
  return counts().single;
}

int FakeSpank::full_loads() const {
  return counts().full;
}

int FakeSpank::call(spank_f& callback) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return callback(nullptr, static_cast<int>(pointers.size()), pointers.data());
}

int FakeSpank::type(const std::string& name, const std::string& value, int remote) {
  const auto found = std::find_if(options.begin(), options.end(), [&](const FakeOption& option) {
    return option.name == name;
  });
  return found == options.end() ? -1 : found->call(value.c_str(), remote);
}

FakeSpank& new_spank(spank_context_t context) {
  current() = std::make_unique<FakeSpank>();
  current()->context = context;
  counts() = {};
  return *current();
}

}  // namespace flex::test

using flex::test::counts;
using flex::test::current;
using flex::test::kFine;
using flex::test::misbehave;

// What a program that loads plugins exports: SPANK, and the parts of Slurm that the plugin looks
// for.
#pragma GCC visibility push(default)
extern "C" {

void slurm_error(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  current()->errors.push_back(flex::test::printed(format, arguments));
  va_end(arguments);
}

void slurm_info(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  current()->infos.push_back(flex::test::printed(format, arguments));
  va_end(arguments);
}

spank_context_t spank_context(void) {
  return current()->context;
}

spank_err_t spank_option_register(spank_t /*spank*/, struct spank_option* option) {
  current()->options.push_back(
      {.name = option->name,
       .argument = option->arginfo,
       .usage = option->usage,
       .call = [cb = option->cb, val = option->val](const char* value, int remote) {
         return cb(val, value, remote);
       }});
  return kFine;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wvarargs"  // an enum before the dots is how Slurm declares it

spank_err_t spank_get_item(spank_t /*spank*/, spank_item_t item, ...) {
  const auto found = current()->items.find(item);
  if (found == current()->items.end()) return ESPANK_NOT_AVAIL;
  va_list arguments;
  va_start(arguments, item);
  *va_arg(arguments, std::uint32_t*) = found->second;
  va_end(arguments);
  return kFine;
}

#pragma GCC diagnostic pop

spank_err_t spank_getenv(spank_t /*spank*/, const char* name, char* value, int size) {
  const auto found = current()->job_environment.find(name);
  if (found == current()->job_environment.end()) return ESPANK_ENV_NOEXIST;
  const auto room = static_cast<std::size_t>(size);
  if (found->second.size() >= room) return ESPANK_NOSPACE;
  std::memcpy(value, found->second.c_str(), found->second.size() + 1);
  return kFine;
}

spank_err_t spank_setenv(spank_t /*spank*/,
                         const char* name,
                         const char* value,
                         int /*overwrite*/) {
  current()->job_environment[name] = value;
  return kFine;
}

spank_err_t spank_unsetenv(spank_t /*spank*/, const char* name) {
  current()->job_environment.erase(name);
  return kFine;
}

spank_err_t spank_job_control_unsetenv(spank_t /*spank*/, const char* name) {
  current()->unset_for_job.emplace_back(name);
  return kFine;
}

int slurm_load_node(time_t /*since*/, node_info_msg_t** answer, uint16_t /*flags*/) {
  ++counts().full;
  if (const int failed = misbehave(); failed != SLURM_SUCCESS) return failed;
  *answer = flex::test::records(current()->node_extra);
  return SLURM_SUCCESS;
}

int slurm_load_node_single(node_info_msg_t** answer, char* name, uint16_t /*flags*/) {
  ++counts().single;
  if (const int failed = misbehave(); failed != SLURM_SUCCESS) return failed;
  *answer = flex::test::records({{name, current()->node_extra[name]}});
  return SLURM_SUCCESS;
}

void slurm_free_node_info_msg(node_info_msg_t* message) {
  for (std::uint32_t i = 0; i < message->record_count; ++i) {
    std::free(message->node_array[i].name);
    std::free(message->node_array[i].extra);
  }
  delete[] message->node_array;
  delete message;
}

#ifdef FLEX_FAKE_PROGRAM_OPTIONS
int opt = 0;

char* slurm_option_get(void* /*options*/, const char* name) {
  const auto found = current()->typed.find(name);
  if (found == current()->typed.end()) return nullptr;
  char* text = ::strdup(found->second.c_str());
  flex::test::handed_out().insert(text);
  return text;
}

int slurm_option_set(void* /*options*/, const char* name, const char* value, bool /*early*/) {
  if (!current()->takes_comment) return SLURM_ERROR;
  current()->typed[name] = value;
  return SLURM_SUCCESS;
}

void slurm_xfree(void** block) {
  if (flex::test::handed_out().erase(*block) > 0) {
    std::free(*block);
    *block = nullptr;
    return;
  }
  // libslurm's own, which frees its blocks with this function, too.
  reinterpret_cast<void (*)(void**)>(::dlsym(RTLD_NEXT, "slurm_xfree"))(block);
}
#endif
}
#pragma GCC visibility pop

// SPDX-License-Identifier: GPL-2.0-or-later
// What slurmctld says of itself, through a process of our own.
#include "ctl/doctor/gather.h"
#include "lib/core/descriptor.h"
#include "lib/slurm/libslurm_scheduler.h"
#include "lib/slurm/node_state.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace flex::doctor {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kPatience{20};
constexpr std::size_t kMostOutput = std::size_t{64} << 20U;

json answer_of(Scheduler& scheduler) {
  json answer;
  const auto running = load_running_conf();
  if (!running) return {{"error", running.error().what}};
  answer["version"] = running->version;
  answer["state"] = running->state_save_location;
  answer["values"] = running->values;
  json names = json::array();
  json unusable = json::array();
  if (const auto nodes = scheduler.load_nodes()) {
    for (const Node& node : *nodes) {
      names.push_back(node.name.text);
      if (is_unusable(node)) unusable.push_back(node.name.text);
    }
  }
  answer["nodes"] = std::move(names);
  answer["unusable"] = std::move(unusable);
  return answer;
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

[[noreturn]] void be_child(int out, int err) {
  ::dup2(err, STDERR_FILENO);
  ::dup2(err, STDOUT_FILENO);
  auto scheduler = open_libslurm();
  const json answer = scheduler ? answer_of(**scheduler) : json{{"error", scheduler.error().what}};
  write_all(out, answer.dump(-1, ' ', false, json::error_handler_t::replace));
  ::_exit(0);
}

/// The last line that says why; Slurm writes "fatal: …" or "program: fatal: …".
std::string last_words(const std::string& text) {
  std::string last;
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    const std::string line = text.substr(from, end - from);
    if (!line.empty() && (last.empty() || line.find("error:") != std::string::npos ||
                          line.find("fatal:") != std::string::npos)) {
      const std::size_t mark = line.find("error: ");
      // An error says which line it was; the fatal one behind it only that there was one.
      if (last.find("error:") == std::string::npos || mark != std::string::npos) last = line;
    }
    from = end + 1;
  }
  return last;
}

class Child final : public SlurmctldLook {
 public:
  Child(pid_t pid, int out, int err) : pid_(pid), out_(out), err_(err) {}

  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  ~Child() override { end(); }

  void finish(SlurmFacts& facts) override {
    facts.was_asked = true;
    read_all();
    end();
    const json answer = json::parse(text_, nullptr, false);
    if (!answer.is_object()) {
      if (is_late_)
        facts.running_error = fmt::format("no answer in {} s", kPatience.count());
      else
        facts.refused = last_words(words_);
      if (!is_late_ && facts.refused.empty()) facts.refused = "its library ended the program";
      return;
    }
    if (answer.contains("error")) {
      facts.running_error = answer.value("error", "");
      return;
    }
    RunningConf running{.version = answer.value("version", ""),
                        .state_save_location = answer.value("state", "")};
    for (const auto& [key, value] : answer.at("values").items())
      if (value.is_string()) running.values[key] = value.get<std::string>();
    for (const json& name : answer.at("nodes"))
      if (name.is_string()) facts.running_nodes[NodeName{name.get<std::string>()}] = true;
    for (const json& name : answer.value("unusable", json::array()))
      if (name.is_string()) facts.unusable.insert(NodeName{name.get<std::string>()});
    facts.running = std::move(running);
  }

 private:
  void read_all() {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    std::array<pollfd, 2> waits{{{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}}};
    while (waits[0].fd >= 0 || waits[1].fd >= 0) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) {
        is_late_ = true;
        return;
      }
      const int ready = ::poll(waits.data(), waits.size(), static_cast<int>(left.count()));
      if (ready < 0 && errno != EINTR) return;
      for (std::size_t i = 0; i < waits.size() && ready > 0; ++i)
        if (waits[i].revents != 0 && !take(waits[i].fd, i == 0 ? text_ : words_)) waits[i].fd = -1;
    }
  }

  static bool take(int fd, std::string& into) {
    std::array<char, 65536> buffer{};
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0) return errno == EINTR;
    if (got == 0 || into.size() > kMostOutput) return false;
    into.append(buffer.data(), static_cast<std::size_t>(got));
    return true;
  }

  void end() {
    if (pid_ <= 0) return;
    if (is_late_) ::kill(pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
  }

  pid_t pid_;
  Descriptor out_;
  Descriptor err_;
  std::string text_{};
  std::string words_{};
  bool is_late_ = false;
};

}  // namespace

std::unique_ptr<SlurmctldLook> ask_slurmctld() {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0) return nullptr;
  Descriptor out_read(out[0]);
  const Descriptor out_write(out[1]);
  if (::pipe2(err.data(), O_CLOEXEC) != 0) return nullptr;
  Descriptor err_read(err[0]);
  const Descriptor err_write(err[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return nullptr;
  if (pid == 0) be_child(out_write.get(), err_write.get());
  return std::make_unique<Child>(pid, out_read.release(), err_read.release());
}

}  // namespace flex::doctor

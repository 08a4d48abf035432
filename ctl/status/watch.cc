// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/status/watch.h"

#include "ctl/setup.h"
#include "ctl/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <string_view>
#include <unistd.h>

namespace flex {

namespace {

constexpr std::string_view kOpen = "\033[?1049h\033[?25l";
constexpr std::string_view kClose = "\033[?25h\033[?1049l";

sigset_t our_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) ::sigaddset(&signals, number);
  return signals;
}

/// False if nobody reads any more.
bool write_out(std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(STDOUT_FILENO, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

/// The signals wait until they are looked for, and the screen is given back whatever happens.
class Screen {
 public:
  explicit Screen(bool is_terminal) : is_terminal_(is_terminal) {
    const sigset_t signals = our_signals();
    ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
    if (is_terminal_) (void)write_out(kOpen);
  }

  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  Screen(Screen&&) = delete;
  Screen& operator=(Screen&&) = delete;

  ~Screen() {
    if (is_terminal_) (void)write_out(kClose);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  /// False if it is to end.
  [[nodiscard]] static bool sleep(std::chrono::seconds time) {
    const sigset_t signals = our_signals();
    const timespec limit{.tv_sec = time.count(), .tv_nsec = 0};
    const int got = ::sigtimedwait(&signals, nullptr, &limit);
    return got < 0 || got == SIGWINCH;  // a new size is drawn at once
  }

 private:
  bool is_terminal_;
  sigset_t before_{};
};

std::string footer_of(const Watch& watch, std::string_view what) {
  const TimePoint now = wall_clock();
  return fmt::format(
      "{}  {} every {}; Ctrl-C ends", clock_text(now, now), what, span_text(watch.interval));
}

/// Only its last line, while the picture is made.
std::string footer_only(const std::string& footer, const Terminal& terminal) {
  return fmt::format("\033[{};1H{}\033[K",
                     terminal.height,
                     terminal.paint(Colour::Dim, cut(footer, terminal.width)));
}

}  // namespace

std::string frame(const std::vector<std::string>& lines,
                  const std::string& footer,
                  const Terminal& terminal) {
  std::string text = "\033[H";
  const std::size_t room = terminal.height > 0 ? terminal.height - 1 : 0;
  for (std::size_t i = 0; i < std::min(lines.size(), room); ++i) text += lines[i] + "\033[K\r\n";
  text += "\033[J";
  return text + footer_only(footer, terminal);
}

void run_watch(const Watch& watch) {
  const Screen screen{standard_output().is_terminal};
  bool is_read = true;
  do {
    const Terminal terminal = standard_output();
    const std::string doing = watch.doing();
    if (terminal.is_terminal) (void)write_out(footer_only(doing + " …", terminal));
    const std::vector<std::string> lines = watch.draw(terminal);
    if (terminal.is_terminal) {
      is_read = write_out(frame(lines, footer_of(watch, doing), terminal));
    } else {
      std::string text;
      for (const std::string& line : lines) text += line + '\n';
      is_read = write_out(text + '\n');
    }
  } while (is_read && Screen::sleep(watch.interval));
}

}  // namespace flex

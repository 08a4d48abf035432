// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/status/watch.h"

#include "ctl/setup.h"
#include "ctl/table.h"
#include "lib/core/program.h"

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

sigset_t window_changes() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGWINCH);
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

/// A look may take minutes, so nobody waits for its end. Only what a handler may do is done.
extern "C" void end_screen(int /*number*/) {
  const ssize_t put = ::write(STDOUT_FILENO, kClose.data(), kClose.size());
  ::_exit(put < 0 ? kExitFailed : kExitOk);
}

extern "C" void end_plainly(int /*number*/) {
  ::_exit(kExitOk);
}

/// SIGINT, SIGTERM and SIGHUP end the process at once, and give the screen back.
class Screen {
 public:
  explicit Screen(bool is_terminal) : is_terminal_(is_terminal) {
    const sigset_t signals = window_changes();
    ::pthread_sigmask(SIG_BLOCK, &signals, &before_);

    struct sigaction action {};

    action.sa_handler = is_terminal_ ? end_screen : end_plainly;
    ::sigfillset(&action.sa_mask);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
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

  /// Less long if the window changes: that is drawn at once.
  static void sleep(std::chrono::seconds time) {
    const sigset_t signals = window_changes();
    const timespec limit{.tv_sec = time.count(), .tv_nsec = 0};
    (void)::sigtimedwait(&signals, nullptr, &limit);
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
  const bool has_screen = !watch.is_plain && standard_output().is_terminal;
  const Screen screen{has_screen};
  while (true) {
    const Terminal terminal = standard_output();
    const std::string doing = watch.doing();
    if (has_screen) (void)write_out(footer_only(doing + " …", terminal));
    const std::vector<std::string> lines = watch.draw(terminal);
    std::string text;
    if (has_screen) {
      text = frame(lines, footer_of(watch, doing), terminal);
    } else {
      for (const std::string& line : lines) text += line + '\n';
      if (!watch.is_plain) text += '\n';
    }
    if (!write_out(text)) return;
    Screen::sleep(watch.interval);
  }
}

}  // namespace flex

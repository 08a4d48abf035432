// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/log.h"

#include "lib/core/clock.h"
#include "lib/core/duration.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <syslog.h>
#include <unistd.h>

namespace flex {

namespace {

bool needs_quotes(std::string_view value) {
  return value.empty() || std::any_of(value.begin(), value.end(), [](char c) {
           return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '=' || c == '\\' ||
                  c == 0x7f;
         });
}

void append_value(std::string& line, std::string_view value) {
  if (!needs_quotes(value)) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      line += '\\';
      line += c;
    } else if (c == '\n') {
      line += "\\n";
    } else if (byte < ' ' || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  line += '"';
}

std::string stamped(LogLevel level, const std::string& program, std::string_view text) {
  return fmt::format("{} level={} prog={} pid={} {}\n",
                     format_time(SystemClock{}.now()),
                     to_string(level),
                     program,
                     ::getpid(),
                     text);
}

void write_whole(int fd, std::string_view text) {
  // One write(2) for one line: O_APPEND keeps lines of several programs apart. Nobody to tell if it
  // fails.
  [[maybe_unused]] const ssize_t written = ::write(fd, text.data(), text.size());
}

struct Descriptor {
  int fd = -1;

  explicit Descriptor(int open_fd) : fd(open_fd) {}

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

int syslog_priority(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return LOG_DEBUG;
    case LogLevel::Info:
      return LOG_INFO;
    case LogLevel::Warning:
      return LOG_WARNING;
    case LogLevel::Error:
      return LOG_ERR;
  }
  return LOG_INFO;
}

}  // namespace

std::string format_fields(std::string_view event, std::initializer_list<Field> fields) {
  std::string line = "event=";
  append_value(line, event);
  for (const Field& field : fields) {
    if (field.value.empty()) continue;
    line += ' ';
    line += field.key;
    line += '=';
    append_value(line, field.value);
  }
  return line;
}

void Log::write(LogLevel level, std::string_view event, std::initializer_list<Field> fields) const {
  if (level < least_ || !sink_) return;
  sink_(level, format_fields(event, fields));
}

Result<LogLevel> parse_log_level(std::string_view text) {
  for (const LogLevel level :
       {LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error}) {
    if (text == to_string(level)) return level;
  }
  return Error{ErrorKind::Invalid,
               fmt::format("'{}' is not a log level (debug, info, warning, error)", text),
               {}};
}

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return "debug";
    case LogLevel::Info:
      return "info";
    case LogLevel::Warning:
      return "warning";
    case LogLevel::Error:
      return "error";
  }
  return "info";
}

Result<Log::Sink> file_sink(const std::string& path, std::string program) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
  if (fd < 0) {
    return Error{ErrorKind::Invalid,
                 fmt::format("cannot open the log file '{}': {}", path, std::strerror(errno)),
                 {}};
  }
  return Log::Sink{[owner = std::make_shared<Descriptor>(fd), program = std::move(program)](
                       LogLevel level, std::string_view text) {
    write_whole(owner->fd, stamped(level, program, text));
  }};
}

Log::Sink syslog_sink(const std::string& program) {
  // openlog keeps the pointer: the sink keeps the string.
  auto name = std::make_shared<const std::string>(program);
  ::openlog(name->c_str(), LOG_PID, LOG_DAEMON);
  return [name](LogLevel level, std::string_view text) {
    ::syslog(syslog_priority(level), "%.*s", static_cast<int>(text.size()), text.data());
  };
}

Log::Sink stderr_sink(std::string program) {
  return [program = std::move(program)](LogLevel level, std::string_view text) {
    write_whole(STDERR_FILENO, stamped(level, program, text));
  };
}

}  // namespace flex

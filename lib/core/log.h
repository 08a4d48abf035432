// SPDX-License-Identifier: GPL-2.0-or-later
// One event, one line, key=value; to syslog, a file or standard error. lib/ returns, programs log.
#pragma once

#include "lib/core/result.h"

#include <fmt/format.h>

#include <concepts>
#include <functional>
#include <string>
#include <string_view>

namespace flex {

enum class LogLevel { Debug, Info, Warning, Error };

/// A key and its value, quoted where it needs to be.
struct Field {
  std::string_view key;
  std::string value;

  Field(std::string_view name, std::string text) : key(name), value(std::move(text)) {}

  Field(std::string_view name, std::string_view text) : key(name), value(text) {}

  Field(std::string_view name, const char* text) : key(name), value(text) {}
  template <class T>

  requires(!std::convertible_to<T, std::string_view>) Field(std::string_view name, const T& any)
      : key(name), value(fmt::format("{}", any)) {}
};

/// `event=… key=value …`: values with spaces, quotes, '=' or control characters are quoted and
/// escaped, so that a line stays one line whatever a job's author typed. Empty values are left out.
[[nodiscard]] std::string format_fields(std::string_view event,
                                        std::initializer_list<Field> fields);

class Log {
 public:
  /// Writes one finished line (no newline at its end).
  using Sink = std::function<void(LogLevel, std::string_view)>;

  Log(Sink sink, LogLevel least) : sink_(std::move(sink)), least_(least) {}

  void debug(std::string_view event, std::initializer_list<Field> fields = {}) const {
    write(LogLevel::Debug, event, fields);
  }

  void info(std::string_view event, std::initializer_list<Field> fields = {}) const {
    write(LogLevel::Info, event, fields);
  }

  void warning(std::string_view event, std::initializer_list<Field> fields = {}) const {
    write(LogLevel::Warning, event, fields);
  }

  void error(std::string_view event, std::initializer_list<Field> fields = {}) const {
    write(LogLevel::Error, event, fields);
  }

 private:
  void write(LogLevel level, std::string_view event, std::initializer_list<Field> fields) const;
  Sink sink_;
  LogLevel least_;
};

/// "debug", "info", "warning", "error".
[[nodiscard]] Result<LogLevel> parse_log_level(std::string_view text);
[[nodiscard]] std::string_view to_string(LogLevel level);

/// Appends to `path`, one write(2) a line, so that several programs may share the file.
[[nodiscard]] Result<Log::Sink> file_sink(const std::string& path, std::string program);
/// syslog(3) with the program's name; systemd's journal reads it.
[[nodiscard]] Log::Sink syslog_sink(const std::string& program);
/// Standard error, with time and level.
[[nodiscard]] Log::Sink stderr_sink(std::string program);

}  // namespace flex

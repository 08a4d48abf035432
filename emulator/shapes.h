// SPDX-License-Identifier: GPL-2.0-or-later
// The API's shapes: methods with verb, path, query and body; messages with their fields.
#pragma once

#include "emulator/json.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace flex::emulator {

/// The generated table as JSON text.
[[nodiscard]] std::string shapes_json();

struct FieldShape {
  std::string type{};     ///< string, bool, int32, int64, uint64, double, enum, message, any …
  std::string message{};  ///< of type message: its name
  std::set<std::string, std::less<>> values{};  ///< of an enum
  bool is_repeated = false;
  bool is_map = false;
  bool is_output_only = false;
};

using MessageShape = std::unordered_map<std::string, FieldShape>;

struct MethodShape {
  std::string name{};  ///< "regionInstanceGroupManagers.insert"
  std::string verb{};
  std::string path{};
  std::vector<std::string> pattern{};  ///< path in parts; "{zone}" stands for anything
  std::map<std::string, std::string, std::less<>> query{};  ///< name to type
  std::string body{};                                       ///< message, or empty
  std::string response{};
};

struct Route {
  const MethodShape* method = nullptr;
  std::map<std::string, std::string, std::less<>> params{};  ///< project, zone, instance …
};

class Shapes {
 public:
  /// Reads the generated table.
  Shapes();

  /// The method that serves verb and path, if there is one.
  [[nodiscard]] std::optional<Route> find(std::string_view verb, std::string_view path) const;
  /// Verbs that some method takes at this path; empty: no such path.
  [[nodiscard]] std::vector<std::string> verbs(std::string_view path) const;
  [[nodiscard]] const MessageShape* message(const std::string& name) const;
  [[nodiscard]] const MethodShape* method(const std::string& name) const;
  [[nodiscard]] bool is_standard_query(std::string_view name) const;

 private:
  std::set<std::string, std::less<>> standard_{};
  std::unordered_map<std::string, MethodShape> methods_{};
  std::unordered_map<std::string, MessageShape> messages_{};
  /// Methods by number of path parts, literal parts first.
  std::map<std::size_t, std::vector<const MethodShape*>> by_length_{};
};

/// The one table of the process.
[[nodiscard]] const Shapes& shapes();

/// "/a/b" to {"a", "b"}, percent-decoding left to the caller.
[[nodiscard]] std::vector<std::string> split_path(std::string_view path);

}  // namespace flex::emulator

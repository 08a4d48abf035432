// SPDX-License-Identifier: GPL-2.0-or-later
// Reads the generated table and finds the method of a path.
#include "emulator/shapes.h"

#include <algorithm>

namespace flex::emulator {

namespace {

FieldShape read_field(const Json& json) {
  FieldShape field{
      .type = text_of(json, "t"),
      .message = text_of(json, "m"),
      .is_repeated = json.contains("r"),
      .is_map = json.contains("p"),
      .is_output_only = json.contains("o"),
  };
  if (json.contains("e"))
    for (const Json& value : json.at("e")) field.values.insert(value.get<std::string>());
  return field;
}

MethodShape read_method(const std::string& name, const Json& json) {
  MethodShape method{
      .name = name,
      .verb = text_of(json, "verb"),
      .path = text_of(json, "path"),
      .body = text_of(json, "body"),
      .response = text_of(json, "response"),
  };
  method.pattern = split_path(method.path);
  for (const auto& [key, type] : json.at("query").items())
    method.query.emplace(key, type.get<std::string>());
  return method;
}

bool is_variable(std::string_view part) {
  return part.starts_with('{');
}

bool matches(const std::vector<std::string>& pattern, const std::vector<std::string>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!is_variable(pattern[i]) && pattern[i] != parts[i]) return false;
  return true;
}

std::size_t count_variables(const MethodShape& method) {
  return static_cast<std::size_t>(
      std::count_if(method.pattern.begin(), method.pattern.end(), [](const std::string& part) {
        return is_variable(part);
      }));
}

}  // namespace

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (at < path.size()) {
    if (path[at] == '/') {
      ++at;
      continue;
    }
    const std::size_t end = std::min(path.find('/', at), path.size());
    parts.emplace_back(path.substr(at, end - at));
    at = end;
  }
  return parts;
}

Shapes::Shapes() {
  const Json json = Json::parse(shapes_json());
  for (const Json& name : json.at("standard")) standard_.insert(name.get<std::string>());
  for (const auto& [name, method] : json.at("methods").items())
    methods_.emplace(name, read_method(name, method));
  for (const auto& [name, fields] : json.at("messages").items()) {
    MessageShape message;
    for (const auto& [key, field] : fields.items()) message.emplace(key, read_field(field));
    messages_.emplace(name, std::move(message));
  }
  for (const auto& [name, method] : methods_) by_length_[method.pattern.size()].push_back(&method);
  // "instances/bulkInsert" must win over "instances/{instance}".
  for (auto& [length, list] : by_length_)
    std::stable_sort(list.begin(), list.end(), [](const MethodShape* a, const MethodShape* b) {
      return count_variables(*a) < count_variables(*b);
    });
}

std::optional<Route> Shapes::find(std::string_view verb, std::string_view path) const {
  const std::vector<std::string> parts = split_path(path);
  const auto list = by_length_.find(parts.size());
  if (list == by_length_.end()) return std::nullopt;
  for (const MethodShape* method : list->second) {
    if (method->verb != verb || !matches(method->pattern, parts)) continue;
    Route route{.method = method};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string& part = method->pattern[i];
      if (is_variable(part)) route.params.emplace(part.substr(1, part.size() - 2), parts[i]);
    }
    return route;
  }
  return std::nullopt;
}

std::vector<std::string> Shapes::verbs(std::string_view path) const {
  const std::vector<std::string> parts = split_path(path);
  std::vector<std::string> found;
  const auto list = by_length_.find(parts.size());
  if (list == by_length_.end()) return found;
  for (const MethodShape* method : list->second)
    if (matches(method->pattern, parts)) found.push_back(method->verb);
  return found;
}

const MessageShape* Shapes::message(const std::string& name) const {
  const auto found = messages_.find(name);
  return found == messages_.end() ? nullptr : &found->second;
}

const MethodShape* Shapes::method(const std::string& name) const {
  const auto found = methods_.find(name);
  return found == methods_.end() ? nullptr : &found->second;
}

bool Shapes::is_standard_query(std::string_view name) const {
  return standard_.contains(name);
}

const Shapes& shapes() {
  static const Shapes table;
  return table;
}

}  // namespace flex::emulator

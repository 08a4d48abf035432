// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/import/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace flex {

namespace {

/// The name in "$(vars.name)"; empty for any other text.
std::string_view vars_reference(std::string_view text) {
  constexpr std::string_view kStart = "$(vars.";
  if (!text.starts_with(kStart) || !text.ends_with(')')) return {};
  return text.substr(kStart.size(), text.size() - kStart.size() - 1);
}

/// What only the toolkit can work out: "$(network.id)", "((var.x * 2))", "a-$(vars.y)".
bool is_expression(std::string_view text) {
  return text.find("$(") != std::string_view::npos || text.find("((") != std::string_view::npos;
}

std::optional<std::size_t> find_key(const TreeNode& map, std::string_view name, Spelling spelling) {
  if (map.kind != TreeNode::Kind::Map) return std::nullopt;
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const std::string& key = map.keys[i].text;
    if (key == name || (spelling == Spelling::Any && to_snake(key) == name)) return i;
  }
  return std::nullopt;
}

template <class T>
bool parse_whole(std::string_view text, T& out) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), out);
  return !text.empty() && status == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::string to_snake(std::string_view name) {
  std::string snake;
  for (const char c : name) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper && !snake.empty()) snake += '_';
    snake += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return snake;
}

const TreeNode* child(const TreeNode& map, std::string_view name, Spelling spelling) {
  const auto index = find_key(map, name, spelling);
  return index ? &map.items[*index] : nullptr;
}

Block::Value Block::follow(Value value) const {
  // A variable may stand for another one; a ring of them ends here.
  for (int depth = 0; depth < 8 && value.node != nullptr; ++depth) {
    if (value.node->kind != TreeNode::Kind::Scalar) return value;
    const std::string_view name = vars_reference(value.node->text);
    if (name.empty()) break;
    const TreeNode* const next = source_.vars == nullptr ? nullptr : child(*source_.vars, name);
    if (next == nullptr) break;
    value.node = next;
  }
  if (value.node == nullptr || value.node->kind != TreeNode::Kind::Scalar) return value;
  if (!is_expression(value.node->text)) return value;
  source_.problems.add(
      value.mark,
      fmt::format(
          "{} is {}, which only the toolkit can work out", value.from, show(value.node->text)),
      "write the value itself");
  value.node = nullptr;
  return value;
}

Block::Value Block::find(std::string_view name) {
  asked_.emplace(name);
  Value value{.from = path_ + std::string(name)};
  if (const auto index = find_key(map_, name, source_.spelling)) {
    value.node = &map_.items[*index];
    value.from = path_ + map_.keys[*index].text;
  } else if (source_.vars != nullptr) {
    value.node = child(*source_.vars, name);
    value.from = "vars." + std::string(name);
  }
  if (value.node == nullptr) return value;
  value.mark = value.node->mark;
  value = follow(std::move(value));
  if (value.node == nullptr) return value;
  const bool is_empty = value.node->kind == TreeNode::Kind::Scalar && value.node->text.empty();
  if (is_empty || value.node->kind == TreeNode::Kind::Null ||
      value.node->kind == TreeNode::Kind::Bad)
    value.node = nullptr;
  return value;
}

bool Block::is_scalar(const Value& value, std::string_view wanted) const {
  if (value.node == nullptr) return false;
  if (value.node->kind == TreeNode::Kind::Scalar) return true;
  source_.problems.add(value.mark, fmt::format("{} must be {}", value.from, wanted));
  return false;
}

Taken<std::size_t> Block::number(std::string_view name, std::size_t most) {
  const Value value = find(name);
  Taken<std::size_t> taken{.mark = value.mark, .from = value.from};
  if (!is_scalar(value, "a whole number")) return taken;
  std::size_t number = 0;
  // JSON made from a protocol buffer has its numbers in quotes, Terraform some with a fraction.
  std::string_view text = value.node->text;
  if (text.ends_with(".0")) text.remove_suffix(2);
  if (!parse_whole(text, number) || number > most) {
    source_.problems.add(value.mark,
                         fmt::format("{} cannot be {}", value.from, show(value.node->text)),
                         fmt::format("a whole number from 0 to {}", most));
    return taken;
  }
  taken.value = number;
  return taken;
}

Taken<bool> Block::boolean(std::string_view name) {
  const Value value = find(name);
  Taken<bool> taken{.mark = value.mark, .from = value.from};
  if (!is_scalar(value, "true or false")) return taken;
  const std::string& text = value.node->text;
  if (text == "true" || text == "True" || text == "TRUE" || text == "yes") {
    taken.value = true;
  } else if (text == "false" || text == "False" || text == "FALSE" || text == "no") {
    taken.value = false;
  } else {
    source_.problems.add(
        value.mark, fmt::format("{} cannot be {}", value.from, show(text)), "true or false");
  }
  return taken;
}

Taken<std::string> Block::text(std::string_view name) {
  const Value value = find(name);
  Taken<std::string> taken{.mark = value.mark, .from = value.from};
  if (is_scalar(value, "a text")) taken.value = value.node->text;
  return taken;
}

Taken<Seconds> Block::duration(std::string_view name) {
  const Value value = find(name);
  Taken<Seconds> taken{.mark = value.mark, .from = value.from};
  if (!is_scalar(value, "a number of seconds")) return taken;
  std::string_view text = value.node->text;
  if (text.ends_with('s')) text.remove_suffix(1);
  if (text.ends_with(".0")) text.remove_suffix(2);
  std::uint32_t seconds = 0;
  if (!parse_whole(text, seconds)) {
    source_.problems.add(value.mark,
                         fmt::format("{} cannot be {}", value.from, show(value.node->text)),
                         "whole seconds, like 604800 or \"604800s\"");
    return taken;
  }
  taken.value = Seconds{seconds};
  return taken;
}

std::vector<Taken<std::string>> Block::texts(std::string_view name) {
  const Value value = find(name);
  if (value.node == nullptr) return {};
  if (value.node->kind != TreeNode::Kind::Sequence) {
    source_.problems.add(value.mark, fmt::format("{} must be a list", value.from));
    return {};
  }
  std::vector<Taken<std::string>> taken;
  for (std::size_t i = 0; i < value.node->items.size(); ++i) {
    const TreeNode& item = value.node->items[i];
    const Value one = follow({&item, item.mark, fmt::format("{}[{}]", value.from, i)});
    if (is_scalar(one, "a text")) taken.push_back({one.node->text, one.mark, one.from});
  }
  return taken;
}

std::optional<Block> Block::section(std::string_view name) {
  const Value value = find(name);
  if (value.node == nullptr) return std::nullopt;
  if (value.node->kind != TreeNode::Kind::Map) {
    source_.problems.add(value.mark, fmt::format("{} must be a section", value.from));
    return std::nullopt;
  }
  return Block{source_, *value.node, value.from + "."};
}

std::vector<Block> Block::sections(std::string_view name) {
  const Value value = find(name);
  if (value.node == nullptr) return {};
  if (value.node->kind != TreeNode::Kind::Sequence) {
    source_.problems.add(value.mark, fmt::format("{} must be a list", value.from));
    return {};
  }
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < value.node->items.size(); ++i) {
    const TreeNode& item = value.node->items[i];
    const std::string path = fmt::format("{}[{}]", value.from, i);
    if (item.kind == TreeNode::Kind::Map) {
      blocks.emplace_back(source_, item, path + ".");
    } else {
      source_.problems.add(item.mark, fmt::format("{} must be a section", path));
    }
  }
  return blocks;
}

std::vector<const TreeNode*> Block::rest() const {
  std::vector<const TreeNode*> keys;
  for (const TreeNode& key : map_.keys) {
    const bool is_asked = asked_.contains(key.text) || (source_.spelling == Spelling::Any &&
                                                        asked_.contains(to_snake(key.text)));
    if (!is_asked) keys.push_back(&key);
  }
  return keys;
}

}  // namespace flex

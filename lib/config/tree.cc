// SPDX-License-Identifier: GPL-2.0-or-later
// The one file that uses yaml-cpp; none of its exceptions leaves it.
#include "lib/config/tree.h"

#include "lib/config/precheck.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/node/node.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <unordered_map>
#include <utility>

namespace flex {

namespace {

/// More values than any real file has.
constexpr std::size_t kMaxValues = 50000;

Mark to_mark(const YAML::Mark& mark) {
  return {mark.line + 1, mark.column + 1};
}

/// Ends the parse; the problem has been reported.
struct GiveUp {};

/// Builds the tree from the parser's events. Its own stack, because the parser's recursion must be
/// stopped before it runs deep.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(Problems& problems) : problems_(problems) {}

  std::optional<TreeNode> root{};

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0)
      give_up(to_mark(mark), "a second YAML document", "one file, one document: remove the '---'");
  }

  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    attach({.kind = TreeNode::Kind::Null, .mark = to_mark(mark)});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    problems_.add(
        to_mark(mark), "an alias (*name)", "write the value; 'defaults:' saves repeating");
    attach({.kind = TreeNode::Kind::Bad, .mark = to_mark(mark)});
  }

  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    attach({.kind = TreeNode::Kind::Scalar,
            .mark = to_mark(mark),
            .is_quoted = tag == "!",  // yaml-cpp's tag of quoted text; "?" for plain
            .text = value});
  }

  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    open({.kind = TreeNode::Kind::Sequence, .mark = to_mark(mark)});
  }

  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark,
                  const std::string& tag,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    open({.kind = TreeNode::Kind::Map, .mark = to_mark(mark)});
  }

  void OnMapEnd() override {
    tidy_keys(open_.back());
    close();
  }

 private:
  [[noreturn]] void give_up(Mark mark, std::string what, std::string hint) {
    problems_.add(mark, std::move(what), std::move(hint));
    throw GiveUp{};
  }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor)
      problems_.add(to_mark(mark), "an anchor (&name)", "remove it; 'defaults:' saves repeating");
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      problems_.add(to_mark(mark), fmt::format("a YAML tag {}", show(tag)), "remove it");
  }

  void open(TreeNode node) {
    if (open_.size() >= kMaxDepth)
      give_up(node.mark, "nested too deeply", fmt::format("at most {} levels", kMaxDepth));
    open_.push_back(std::move(node));
  }

  void close() {
    TreeNode node = std::move(open_.back());
    open_.pop_back();
    attach(std::move(node));
  }

  void attach(TreeNode node) {
    if (++values_ > kMaxValues)
      give_up(node.mark, "too many values", fmt::format("at most {} in all", kMaxValues));
    if (open_.empty()) {
      root = std::move(node);
      return;
    }
    TreeNode& parent = open_.back();
    // A map's children come in turns: key, value, key, value.
    const bool is_key =
        parent.kind == TreeNode::Kind::Map && parent.keys.size() == parent.items.size();
    (is_key ? parent.keys : parent.items).push_back(std::move(node));
  }

  /// Drops what is not a key, and all but the first of the same key.
  void tidy_keys(TreeNode& map) {
    std::unordered_map<std::string, int> lines;
    std::vector<TreeNode> keys;
    std::vector<TreeNode> items;
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      TreeNode& key = map.keys[i];
      if (key.kind == TreeNode::Kind::Bad) continue;
      if (key.kind != TreeNode::Kind::Scalar || key.text.empty()) {
        problems_.add(key.mark, "this is no key", "a key is a word followed by ':'");
        continue;
      }
      const auto [first, is_new] = lines.emplace(key.text, key.mark.line);
      if (!is_new) {
        problems_.add(key.mark,
                      fmt::format("duplicate key {}", show(key.text)),
                      fmt::format("it is already in line {}", first->second));
        continue;
      }
      keys.push_back(std::move(key));
      items.push_back(std::move(map.items[i]));
    }
    map.keys = std::move(keys);
    map.items = std::move(items);
  }

  Problems& problems_;
  std::vector<TreeNode> open_{};
  std::size_t values_ = 0;
  int documents_ = 0;
};

std::string parse_hint(const std::string& message) {
  if (message.find("flow") == std::string::npos) return {};
  return "inside {…} or […] a node list needs quotes: \"a3u-[0-3]\"";
}

}  // namespace

std::optional<TreeNode> parse_tree(std::string_view text, Problems& problems) {
  if (!precheck(text, problems)) return std::nullopt;
  Builder builder{problems};
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser{stream};
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const GiveUp&) {
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    problems.add(
        to_mark(error.mark), fmt::format("not YAML: {}", error.msg), parse_hint(error.msg));
    return std::nullopt;
  } catch (const std::exception& error) {
    problems.add({}, fmt::format("cannot be read as YAML: {}", error.what()));
    return std::nullopt;
  }
  if (!builder.root) return TreeNode{};
  return std::move(builder.root);
}

}  // namespace flex

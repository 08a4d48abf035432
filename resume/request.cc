// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/request.h"

#include "lib/slurm/hostlist.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <optional>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace flex {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDepth = 32;
// A file with more names than this, all jobs counted, is no resume request.
constexpr std::size_t kMaxNames = std::size_t{1} << 20U;
constexpr std::size_t kMaxReason = 160;

Error invalid(std::string_view place, std::string_view why) {
  return {ErrorKind::Invalid, fmt::format("resume file: {}: {}", place, why)};
}

/// "line 3, column 17" of a byte.
std::string place_of(std::string_view text, std::size_t offset) {
  const auto before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const auto newline = before.rfind('\n');
  const auto column =
      newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
  return fmt::format("line {}, column {}", line, column);
}

/// A text for a message: cut, and with nothing in it that could break a line or an encoding.
std::string printable(std::string_view text, std::size_t limit = kMaxReason) {
  std::string out(text.substr(0, limit));
  for (char& c : out) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return text.size() > limit ? out + "…" : out;
}

/// nlohmann's message without its own prefix and place: "[…] parse error at line 1, column 2: why".
std::string reason_of(std::string_view message) {
  constexpr std::string_view kColumn = ", column ";
  if (const auto column = message.find(kColumn); column != std::string_view::npos) {
    if (const auto colon = message.find(": ", column); colon != std::string_view::npos) {
      return printable(message.substr(colon + 2));
    }
  }
  const auto bracket = message.find("] ");
  return printable(bracket == std::string_view::npos ? message : message.substr(bracket + 2));
}

/// Takes nlohmann's events, so that no tree is built and a mistake is found where it is.
class Reader final : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<ResumeRequest> finish() && {
    if (problem_) return *problem_;
    if (!has_jobs_) return invalid("jobs", "missing");
    if (!has_all_nodes_) return invalid("all_nodes or all_nodes_resume", "missing");
    return std::move(request_);
  }

  bool null() override { return scalar("null", nullptr); }

  bool boolean(bool) override { return scalar("a boolean", nullptr); }

  bool number_integer(number_integer_t) override { return number({}); }

  bool number_unsigned(number_unsigned_t value) override { return number(value); }

  bool number_float(number_float_t, const string_t&) override { return number({}); }

  bool string(string_t& value) override { return scalar("a string", &value); }

  bool binary(binary_t&) override { return scalar("binary data", nullptr); }

  bool start_object(std::size_t) override { return open(Kind::Object); }

  bool start_array(std::size_t) override { return open(Kind::Array); }

  bool key(string_t& value) override {
    Level& level = levels_.back();
    level.key = value;
    if (level.what != What::Ignored && !level.seen.insert(value).second) {
      return fail(path(), "given twice");
    }
    return true;
  }

  bool end_object() override {
    const bool good = levels_.back().what != What::Job || end_job();
    levels_.pop_back();
    return good;
  }

  bool end_array() override {
    levels_.pop_back();
    return true;
  }

  bool parse_error(std::size_t position,
                   const std::string&,
                   const nlohmann::detail::exception& error) override {
    return fail(place_of(text_, position == 0 ? 0 : position - 1), reason_of(error.what()));
  }

 private:
  enum class Kind { Object, Array };
  enum class What { Root, Jobs, Job, Ignored };

  /// An object or array that is open.
  struct Level {
    What what = What::Ignored;
    Kind kind = Kind::Object;
    std::string key{};      ///< the last one
    std::size_t index = 0;  ///< of the element that comes next
    std::unordered_set<std::string> seen{};
  };

  using Entry = ResumeRequest::JobEntry;

  bool fail(std::string_view place, std::string_view why) {
    problem_ = invalid(place, why);
    return false;
  }

  /// Where the value is that has just come: "jobs[3].job_id".
  [[nodiscard]] std::string path() const {
    std::string text;
    for (const Level& level : levels_) {
      if (level.kind == Kind::Array) {
        text += fmt::format("[{}]", level.index == 0 ? 0 : level.index - 1);
      } else {
        if (!text.empty()) text += '.';
        text += printable(level.key, 40);
      }
    }
    return text.empty() ? "top level" : printable(text);
  }

  /// To be called for each value: counts an array's elements.
  What enter() {
    if (levels_.empty()) return What::Root;
    Level& level = levels_.back();
    if (level.kind == Kind::Array) ++level.index;
    return level.what;
  }

  [[nodiscard]] bool is_here(std::string_view name) const { return levels_.back().key == name; }

  bool wanted(std::string_view what, std::string_view found) {
    return fail(path(), fmt::format("expected {}, found {}", what, found));
  }

  bool open(Kind kind) {
    const std::string_view found = kind == Kind::Object ? "an object" : "an array";
    if (levels_.size() >= kMaxDepth) {
      return fail(path(), fmt::format("more than {} levels of nesting", kMaxDepth));
    }
    const bool at_top = levels_.empty();
    const What parent = enter();
    What what = What::Ignored;
    if (at_top) {
      if (kind != Kind::Object) return wanted("an object", found);
      what = What::Root;
    } else if (parent == What::Root && is_here("jobs")) {
      if (kind != Kind::Array) return wanted("an array", found);
      what = What::Jobs;
      has_jobs_ = true;
    } else if (parent == What::Jobs) {
      if (kind != Kind::Object) return wanted("an object", found);
      what = What::Job;
      start_job();
    } else if (const auto expected = expected_here(parent); !expected.empty()) {
      return wanted(expected, found);
    }
    levels_.push_back({.what = what, .kind = kind});
    return true;
  }

  /// What a scalar field that we read must be; empty for one that is ignored.
  [[nodiscard]] std::string_view expected_here(What parent) {
    if (parent == What::Root && (is_here("all_nodes") || is_here("all_nodes_resume"))) {
      return "a string";
    }
    if (parent == What::Job) {
      if (is_here("job_id")) return "a number";
      if (nodes_here() != nullptr || text_here() != nullptr) return "a string";
    }
    return {};
  }

  bool number(std::optional<number_unsigned_t> value) {
    if (levels_.empty() || levels_.back().what != What::Job || !is_here("job_id")) {
      return scalar("a number", nullptr);
    }
    constexpr auto kMaxId = std::numeric_limits<JobId>::max();
    if (!value || *value == 0 || *value > kMaxId) {
      return fail(path(), fmt::format("expected a whole number from 1 to {}", kMaxId));
    }
    job_.id = static_cast<JobId>(*value);
    const auto [first, is_new] = ids_.try_emplace(job_.id, request_.jobs.size());
    if (is_new) return true;
    return fail(path(), fmt::format("job {} is in jobs[{}] already", job_.id, first->second));
  }

  /// A value that is neither object nor array; `text` for a string. Null stands for an empty
  /// string.
  bool scalar(std::string_view found, std::string* text) {
    if (levels_.empty()) return wanted("an object", found);
    const What parent = enter();
    if (parent == What::Jobs) return wanted("an object", found);
    if (parent == What::Root && is_here("jobs")) return wanted("an array", found);
    const auto expected = expected_here(parent);
    if (expected.empty()) return true;
    const bool is_null = found == "null" && expected == "a string";
    if (text == nullptr && !is_null) return wanted(expected, found);
    if (text != nullptr && expected != "a string") return wanted(expected, found);
    if (parent == What::Root) return all_nodes(text);
    if (auto* const nodes = nodes_here()) return expand(text, *nodes);
    if (text != nullptr) *text_here() = std::move(*text);
    return true;
  }

  bool all_nodes(const std::string* text) {
    // The longer name is the later one, should a release give both.
    if (is_here("all_nodes") && has_all_nodes_) return true;
    has_all_nodes_ = true;
    return expand(text, request_.all_nodes);
  }

  bool expand(const std::string* text, std::vector<NodeName>& nodes) {
    nodes.clear();
    if (text == nullptr) return true;
    auto names = expand_hostlist(*text);
    if (!names) return fail(path(), names.error().what);
    names_ += names->size();
    if (names_ > kMaxNames) return fail(path(), fmt::format("more than {} names", kMaxNames));
    nodes = *std::move(names);
    return true;
  }

  // ---- one job

  void start_job() {
    job_ = {};
    nodes_.clear();
  }

  /// The list that the key of a job's object stands for; null for another key.
  std::vector<NodeName>* nodes_here() {
    if (is_here("nodes")) return &nodes_;
    if (is_here("nodes_alloc")) return &job_.nodes_alloc;
    if (is_here("nodes_resume")) return &job_.nodes_resume;
    return nullptr;
  }

  std::string* text_here() {
    if (is_here("partition")) return &job_.partition;
    if (is_here("extra")) return &job_.extra;
    if (is_here("features")) return &job_.features;
    if (is_here("reservation")) return &job_.reservation;
    return nullptr;
  }

  bool end_job() {
    const auto& seen = levels_.back().seen;
    levels_.back().key.clear();
    const auto here = fmt::format("jobs[{}]", request_.jobs.size());
    if (!seen.contains("job_id")) return fail(here + ".job_id", "missing");
    if (seen.contains("nodes_alloc") != seen.contains("nodes_resume")) {
      return fail(here, "nodes_alloc and nodes_resume go together, one is missing");
    }
    if (!seen.contains("nodes_alloc")) {
      if (!seen.contains("nodes")) return fail(here, "no nodes, or nodes_alloc and nodes_resume");
      job_.nodes_alloc = nodes_;
      job_.nodes_resume = std::move(nodes_);
    } else if (const auto* const stranger = find_stranger()) {
      return fail(here + ".nodes_resume", fmt::format("{} is not in nodes_alloc", *stranger));
    }
    request_.jobs.push_back(std::move(job_));
    return true;
  }

  /// A node to be powered up for the job that is not the job's.
  [[nodiscard]] const NodeName* find_stranger() const {
    if (job_.nodes_resume == job_.nodes_alloc) return nullptr;
    std::unordered_set<std::string_view> own;
    own.reserve(job_.nodes_alloc.size());
    for (const auto& node : job_.nodes_alloc) own.insert(node.text);
    const auto found = std::find_if(job_.nodes_resume.begin(),
                                    job_.nodes_resume.end(),
                                    [&](const NodeName& n) { return !own.contains(n.text); });
    return found == job_.nodes_resume.end() ? nullptr : &*found;
  }

  std::string_view text_;
  ResumeRequest request_{};
  Entry job_{};
  std::vector<NodeName> nodes_{};  ///< the job's "nodes" (22.05)
  std::vector<Level> levels_{};
  std::unordered_map<JobId, std::size_t> ids_{};
  std::size_t names_ = 0;
  bool has_jobs_ = false;
  bool has_all_nodes_ = false;
  std::optional<Error> problem_{};
};

Error file_error(int number, const std::string& path) {
  const auto kind = number == ENOENT   ? ErrorKind::NotFound
                    : number == EACCES ? ErrorKind::Denied
                                       : ErrorKind::Internal;
  return {kind, fmt::format("cannot read the resume file {}: {}", path, std::strerror(number))};
}

}  // namespace

Result<ResumeRequest> parse_resume_file(std::string_view text) {
  if (text.empty()) return invalid("line 1, column 1", "the file is empty");
  if (text.size() > kMaxResumeFile) {
    return invalid("size", fmt::format("more than {} bytes", kMaxResumeFile));
  }
  // nlohmann takes a zero byte for the end of the text.
  if (const auto zero = text.find('\0'); zero != std::string_view::npos) {
    return invalid(place_of(text, zero), "a zero byte");
  }
  try {
    Reader reader(text);
    Json::sax_parse(text.begin(), text.end(), &reader);
    return std::move(reader).finish();
  } catch (const std::exception& error) {
    return Error{ErrorKind::Internal, fmt::format("resume file: {}", printable(error.what()))};
  }
}

Result<std::string> read_resume_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return file_error(errno, path);
  std::string text;
  std::array<char, 65536> buffer{};
  int number = 0;
  while (text.size() <= kMaxResumeFile) {
    const auto got = read(fd, buffer.data(), buffer.size());
    if (got == 0) break;
    if (got > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      number = errno;
      break;
    }
  }
  close(fd);
  if (number != 0) return file_error(number, path);
  if (text.size() > kMaxResumeFile) {
    return invalid("size", fmt::format("more than {} bytes", kMaxResumeFile));
  }
  return text;
}

}  // namespace flex

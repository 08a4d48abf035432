// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/history.h"

#include "lib/slurm/hostlist.h"
#include "test/support/builders.h"
#include "test/support/catch.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

using namespace flex;

namespace {

/// A state directory of its own.
struct Dir {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("flex-history-" + std::to_string(::getpid()));

  Dir() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directory(path);
  }

  Dir(const Dir&) = delete;
  Dir& operator=(const Dir&) = delete;

  ~Dir() { std::filesystem::remove_all(path); }

  [[nodiscard]] std::string text() const { return path.string(); }

  void append(const std::string& raw) const {
    std::ofstream(history_path(text()), std::ios::app) << raw;
  }
};

Event event(const std::string& what, JobId job = 0) {
  Event made;
  made.when = TimePoint{Seconds{1'800'000'000}};
  made.program = "flex-test";
  made.what = what;
  made.job = job;
  return made;
}

std::vector<Event> read_on(const std::string& dir, HistoryMark& mark) {
  std::vector<Event> events;
  (void)read_history(dir, mark, [&](Event one) { events.push_back(std::move(one)); });
  return events;
}

std::vector<Event> read_all(const std::string& dir) {
  HistoryMark mark;
  return read_on(dir, mark);
}

void append(const std::string& dir, const Event& one, std::size_t most = kMostHistory) {
  REQUIRE(append_history(dir, std::vector{one}, most));
}

}  // namespace

TEST_CASE("history: what is written is read", "[fleet]") {
  Event whole = event("requested", 12);
  whole.nodeset = "a";
  whole.group = "hpc-a";
  whole.request = "j12-x";
  set_nodes(whole, test::nodes("a", 3));
  whole.rule = "unrequested_node";
  whole.why = "she said \"no\"\nand left";
  whole.more = {{"run_s", "900"}, {"how", "TimeLimit"}};
  CHECK(whole.nodes == "a-[0-2]");
  CHECK(whole.n == 3);
  const auto again = parse_event(to_line(whole));
  REQUIRE(again);
  CHECK(*again == whole);
  CHECK(to_line(whole).find('\n') == std::string::npos);
}

TEST_CASE("history: what is no UTF-8 is replaced and can be read", "[fleet]") {
  Event odd = event("failed");
  odd.why = "caf\xe9 \xff\xc3";
  odd.more["x"] = "\xed\xa0\x80";
  const auto again = parse_event(to_line(odd));
  REQUIRE(again);
  CHECK(again->why.substr(0, 3) == "caf");
  CHECK(to_line(*again) == to_line(odd));
}

TEST_CASE("history: a node list that is cut can still be read", "[fleet]") {
  std::vector<NodeName> odd_ones;
  for (int i = 0; i < 5000; i += 2) odd_ones.push_back({"gpu-" + std::to_string(i)});
  std::vector<NodeName> many_names;
  for (int i = 0; i < 2000; ++i) many_names.push_back({"n" + std::to_string(i) + "x"});
  for (const auto& nodes : {odd_ones, many_names}) {
    Event big = event("vm_up");
    set_nodes(big, nodes);
    REQUIRE(big.nodes.size() > 4096);
    const auto again = parse_event(to_line(big));
    REQUIRE(again);
    CHECK(again->n == nodes.size());
    const auto expanded = expand_hostlist(again->nodes);
    REQUIRE(expanded);
    CHECK(expanded->size() > 100);
    const std::set<NodeName> all(nodes.begin(), nodes.end());
    for (const NodeName& node : *expanded) CHECK(all.contains(node));
    CHECK(to_line(*again) == to_line(big));
  }
}

TEST_CASE("history: a line is never longer than is read", "[fleet]") {
  Event huge = event(std::string(9000, 'w'));
  huge.why = std::string(100'000, '\x01');
  for (int i = 0; i < 500; ++i) huge.more["key" + std::to_string(i)] = std::string(9000, '"');
  const std::string line = to_line(huge);
  CHECK(line.size() < 65536);
  CHECK(parse_event(line));
}

TEST_CASE("history: lines of others are refused", "[fleet]") {
  const auto bad = {R"()",
                    R"([])",
                    R"("x")",
                    R"({"what":"x"})",
                    R"({"t":1})",
                    R"({"t":1,"what":""})",
                    R"({"t":1,"what":7})",
                    R"({"t":-1,"what":"x"})",
                    R"({"t":9223372036854775807,"what":"x"})",
                    R"({"t":18446744073709551615,"what":"x"})",
                    R"({"t":1.5,"what":"x"})",
                    R"({"t":1,"what":"x")"};
  for (const char* line : bad) {
    CAPTURE(line);
    CHECK_FALSE(parse_event(line));
  }
  const auto odd = parse_event(R"({"t":1,"what":"x","job":99999999999,"n":-1,"more":[],"new":{}})");
  REQUIRE(odd);
  CHECK(odd->job == 0);
  CHECK(odd->n == 0);
}

TEST_CASE("history: read on from where one was", "[fleet]") {
  const Dir dir;
  HistoryMark mark;
  CHECK_FALSE(read_history(dir.text(), mark, [](const Event&) {}));
  append(dir.text(), event("one"));
  CHECK(read_on(dir.text(), mark).size() == 1);
  CHECK(read_on(dir.text(), mark).empty());
  append(dir.text(), event("two"));
  const auto news = read_on(dir.text(), mark);
  REQUIRE(news.size() == 1);
  CHECK(news[0].what == "two");
  HistoryMark end = end_of_history(dir.text());
  CHECK(read_on(dir.text(), end).empty());
}

TEST_CASE("history: half a line waits for its other half, and spoils no other", "[fleet]") {
  const Dir dir;
  append(dir.text(), event("one"));
  HistoryMark mark;
  CHECK(read_on(dir.text(), mark).size() == 1);
  const std::string line = to_line(event("two")) + "\n";
  dir.append(line.substr(0, 10));
  CHECK(read_on(dir.text(), mark).empty());
  dir.append(line.substr(10));
  CHECK(read_on(dir.text(), mark).size() == 1);
  // Its writer is gone: the next line is a line of its own.
  dir.append("{\"t\":17");
  append(dir.text(), event("three"));
  const auto news = read_on(dir.text(), mark);
  REQUIRE(news.size() == 1);
  CHECK(news[0].what == "three");
}

TEST_CASE("history: a full file makes room, and the reader misses nothing", "[fleet]") {
  const Dir dir;
  HistoryMark mark;
  std::vector<JobId> seen;
  for (JobId job = 1; job <= 100; ++job) {
    append(dir.text(), event("x", job), 1000);
    if (job % 7 != 0) continue;
    for (const Event& one : read_on(dir.text(), mark)) seen.push_back(one.job);
  }
  for (const Event& one : read_on(dir.text(), mark)) seen.push_back(one.job);
  REQUIRE(seen.size() == 100);
  for (JobId job = 1; job <= 100; ++job) CHECK(seen[job - 1] == job);
  CHECK(std::filesystem::file_size(history_path(dir.text()) + ".1") < 1200);
  const auto kept = read_all(dir.text());
  REQUIRE(kept.size() > 10);
  CHECK(kept.back().job == 100);
  for (std::size_t i = 1; i < kept.size(); ++i) CHECK(kept[i].job == kept[i - 1].job + 1);
}

TEST_CASE("history: a shorter file of the same number is a new one", "[fleet]") {
  const Dir dir;
  append(dir.text(), event("x"));
  HistoryMark mark = end_of_history(dir.text());
  mark.offset += 1000;
  CHECK(read_on(dir.text(), mark).size() == 1);
}

TEST_CASE("history: several writers while it is rotated lose no line of theirs", "[fleet]") {
  constexpr int kWriters = 4;
  constexpr JobId kEach = 150;
  const Dir dir;
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool ok = true;
      for (JobId job = 1; job <= kEach; ++job) {
        Event one = event("w" + std::to_string(writer), job);
        one.why = std::string(500, 'y');
        // About three files' worth: what is dropped is the oldest.
        ok = append_history(dir.text(), std::vector{one}, 150'000).has_value() && ok;
      }
      ::_exit(ok ? 0 : 1);
    }
    writers.push_back(child);
  }
  for (const pid_t child : writers) {
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  std::map<std::string, JobId> last;
  std::size_t count = 0;
  for (const Event& one : read_all(dir.text())) {
    ++count;
    const auto before = last.find(one.what);
    // Of each writer, what is there is in a row and up to its end.
    if (before != last.end()) CHECK(one.job == before->second + 1);
    last[one.what] = one.job;
  }
  CHECK(count > 250);
  for (const auto& [writer, job] : last) CHECK(job == kEach);
  CHECK(std::filesystem::exists(history_path(dir.text()) + ".1"));
}

TEST_CASE("history: no directory is no alarm, anything else is", "[fleet]") {
  std::vector<std::string> lines;
  const Log log{[&](LogLevel level, std::string_view line) {
                  lines.push_back(std::string(to_string(level)) + " " + std::string(line));
                },
                LogLevel::Debug};
  keep_in_history("", std::vector{event("x")}, log);
  CHECK(lines.empty());
  keep_in_history("/nonexistent/flex", std::vector{event("x")}, log);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("debug"));
  keep_in_history("/proc/self/mem", std::vector{event("x")}, log);
  REQUIRE(lines.size() == 2);
  CHECK(lines[1].starts_with("warning"));
}

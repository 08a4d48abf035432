// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/queue.h"

#include "test/support/catch.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace flex;

namespace {

constexpr TimePoint kNoon{Seconds{1'800'000'000}};

/// A directory that is gone after the test.
struct Directory {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("flex-queue-" + std::to_string(::getpid()));

  Directory() { std::filesystem::create_directory(path); }

  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  ~Directory() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("queue: what is written is read, and gone when nobody waits", "[fleet]") {
  const Directory dir;
  CHECK(load_queue(dir.path, kNoon, Seconds{15}).is_empty());
  CHECK(write_queue_file(dir.path, QueueFile{.waiting = 12, .written = kNoon}));
  CHECK(load_queue(dir.path, kNoon, Seconds{15}).waiting == 12);
  CHECK(write_queue_file(dir.path, QueueFile{.waiting = 0, .written = kNoon}));
  CHECK(write_queue_file(dir.path, QueueFile{.waiting = 0, .written = kNoon}));
  CHECK(std::filesystem::is_empty(dir.path));
  CHECK(load_queue(dir.path, kNoon, Seconds{15}).is_empty());
}

TEST_CASE("queue: who waits for room in a nodeset", "[fleet]") {
  const QueueFile queue{.waiting = 0, .written = kNoon, .nodesets = {{"a", 2}, {"b-c", 11}}};
  CHECK(to_text(queue) == "0 1800000000\na 2\nb-c 11\n");
  const auto read = parse_queue_file(to_text(queue));
  REQUIRE(read);
  CHECK(read->nodesets == queue.nodesets);
  CHECK(is_in_force(queue, kNoon, Seconds{15}));
  const Directory dir;
  CHECK(write_queue_file(dir.path, queue));
  CHECK(load_queue(dir.path, kNoon, Seconds{15}).nodesets.at("b-c") == 11);
  // As an older sweeper writes it.
  CHECK(parse_queue_file("3 1800000000\n")->waiting == 3);
}

TEST_CASE("queue: one that is old holds nobody up", "[fleet]") {
  using namespace std::chrono_literals;
  const QueueFile queue{.waiting = 1, .written = kNoon};
  CHECK(is_in_force(queue, kNoon + 299s, 15s));
  CHECK_FALSE(is_in_force(queue, kNoon + 300s, 15s));
  CHECK(is_in_force(queue, kNoon + 399s, 100s));
  CHECK_FALSE(is_in_force(queue, kNoon + 400s, 100s));
  CHECK(is_in_force(queue, kNoon - 60s, 15s));
  CHECK_FALSE(is_in_force(queue, kNoon - 61s, 15s));
  CHECK_FALSE(is_in_force(QueueFile{.waiting = 0, .written = kNoon}, kNoon, 15s));
}

TEST_CASE("queue: nonsense is nobody", "[fleet]") {
  const std::string text = GENERATE(as<std::string>(),
                                    "",
                                    "\n",
                                    "12",
                                    "12 ",
                                    "x 1800000000\n",
                                    "12 x\n",
                                    "-1 1800000000\n",
                                    "12 1800000000",
                                    "12 1800000000\n\n",
                                    "12 1800000000\na\n",
                                    "12 1800000000\na x\n",
                                    "12 1800000000\n 3\n",
                                    "12 1800000000\na 3",
                                    "12 99999999999999999999999\n");
  CHECK_FALSE(parse_queue_file(text));
  const Directory dir;
  std::ofstream(dir.path / "queue") << text;
  CHECK(load_queue(dir.path, kNoon, Seconds{15}).is_empty());
}

TEST_CASE("queue: which refusals wait for a turn", "[fleet]") {
  CHECK(is_active_requests_quota({ErrorKind::Quota, "Quota 'ACTIVE_RESIZE_REQUESTS' exceeded"}));
  CHECK(is_active_requests_quota(
      {ErrorKind::Quota, "compute.googleapis.com/active_resize_requests"}));
  CHECK_FALSE(is_active_requests_quota({ErrorKind::Quota, "Quota 'CPUS' exceeded"}));
  CHECK_FALSE(is_active_requests_quota({ErrorKind::Invalid, "ACTIVE_RESIZE_REQUESTS"}));
  CHECK(is_max_nodes({ErrorKind::Quota, "full", "MAX_NODES"}));
  CHECK_FALSE(is_max_nodes({ErrorKind::Invalid, "too big", "MAX_NODES"}));
}

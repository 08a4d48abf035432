// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/user_names.h"

#include "test/support/builders.h"
#include "test/support/catch.h"

using namespace flex;
using namespace flex::test;

namespace {

/// A directory of users, with a clock that its answers move.
struct Directory {
  int asked = 0;
  std::chrono::milliseconds takes{1};
  UserNames::SteadyTime now{std::chrono::hours{1}};
  UserNames names{[this](std::uint32_t user) {
                    ++asked;
                    now += takes;
                    return user == 404 ? std::string{} : "user" + std::to_string(user);
                  },
                  [this] { return now; }};

  std::string name(std::uint32_t user) {
    std::vector<Job> jobs{job(1, nodes("a", 1), {})};
    jobs[0].user_id = user;
    names.fill(jobs);
    return jobs[0].user;
  }
};

}  // namespace

TEST_CASE("user_names: each user is looked up once, also one that is not there", "[sweeper]") {
  Directory directory;
  for (int i = 0; i < 3; ++i) {
    CHECK(directory.name(1000) == "user1000");
    CHECK(directory.name(404).empty());
  }
  CHECK(directory.asked == 2);
}

TEST_CASE("user_names: a name that is known is kept, and jobs without nodes are left alone",
          "[sweeper]") {
  Directory directory;
  std::vector<Job> jobs{job(1, nodes("a", 1), {}), job(2, {}, {})};
  jobs[0].user = "alice";
  jobs[1].is_pending = true;
  directory.names.fill(jobs);
  CHECK(jobs[0].user == "alice");
  CHECK(jobs[1].user.empty());
  CHECK(directory.asked == 0);
}

TEST_CASE("user_names: a slow directory is left alone for a while", "[sweeper]") {
  Directory directory;
  directory.takes = std::chrono::seconds{2};
  CHECK(directory.name(1) == "user1");
  CHECK(directory.name(2).empty());
  CHECK(directory.name(1) == "user1");
  directory.now += std::chrono::minutes{11};
  CHECK(directory.name(2) == "user2");
}

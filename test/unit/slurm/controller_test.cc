// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/controller.h"

#include "test/support/catch.h"

#include <array>
#include <unistd.h>

using namespace flex;

TEST_CASE("is_same_host: a short name is its full name, another host is not", "[slurm]") {
  CHECK(slurm::is_same_host("ctl", "ctl"));
  CHECK(slurm::is_same_host("ctl", "ctl.example.org"));
  CHECK(slurm::is_same_host("ctl.example.org", "ctl"));
  CHECK_FALSE(slurm::is_same_host("ctl", "ctl2"));
  CHECK_FALSE(slurm::is_same_host("ctl.example.org", "ctl.example.org.uk"));
  CHECK_FALSE(slurm::is_same_host("ctl.example.org", "ctl.example.com"));
  CHECK_FALSE(slurm::is_same_host("", "ctl"));
  CHECK_FALSE(slurm::is_same_host("", ""));
}

TEST_CASE("is_this_host: by name, by localhost and by address", "[slurm]") {
  std::array<char, 256> own{};
  REQUIRE(gethostname(own.data(), own.size() - 1) == 0);
  // No resolver: the name alone must do, and an address of another machine must not.
  CHECK(slurm::is_this_host({.name = own.data(), .address = "192.0.2.1"}));
  CHECK(slurm::is_this_host({.name = "localhost", .address = "192.0.2.1"}));
  CHECK(slurm::is_this_host({.name = "elsewhere", .address = "127.0.0.1"}));
  CHECK(slurm::is_this_host({.name = "elsewhere", .address = "127.0.1.1"}));
  CHECK(slurm::is_this_host({.name = "elsewhere", .address = "::ffff:127.0.0.1"}));
  CHECK_FALSE(slurm::is_this_host({.name = "elsewhere", .address = "192.0.2.1"}));
  CHECK_FALSE(slurm::is_this_host({.name = "elsewhere", .address = "2001:db8::7f00:1"}));
  CHECK_FALSE(slurm::is_this_host({.name = "elsewhere", .address = ""}));
}

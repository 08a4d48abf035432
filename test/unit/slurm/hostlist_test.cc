// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/hostlist.h"

#include "test/support/catch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

using namespace flex;

namespace {

std::string expanded(std::string_view text) {
  const auto names = expand_hostlist(text);
  return names ? fmt::format("{}", fmt::join(*names, " ")) : "error: " + names.error().what;
}

std::vector<NodeName> some_nodes(const std::string& prefix, int first, int last, int step = 1) {
  std::vector<NodeName> nodes;
  for (int i = first; i <= last; i += step) nodes.push_back({prefix + std::to_string(i)});
  return nodes;
}

}  // namespace

TEST_CASE("expand_hostlist: gives the names in order, each once", "[slurm]") {
  const auto [text, names] = GENERATE(table<std::string, std::string>({
      {"", ""},
      {"a", "a"},
      {"a3u-[0-2,7]", "a3u-0 a3u-1 a3u-2 a3u-7"},
      {"a,b[1-2],c", "a b1 b2 c"},
      {"n[08-11]", "n08 n09 n10 n11"},
      {"n[98-101]", "n98 n99 n100 n101"},
      {"n[099-101]", "n099 n100 n101"},
      {"n[5]", "n5"},
      {"n[7-7]", "n7"},
      {"n2,n1,n2,n[1-3]", "n2 n1 n3"},
      {"n007,n7", "n007 n7"},
      {"r[0-1]n[0-1]", "r0n0 r0n1 r1n0 r1n1"},
      {"Host_1.example.com", "Host_1.example.com"},
      {"9lives", "9lives"},
      {"n999999999999999999", "n999999999999999999"},
  }));
  INFO(text);
  CHECK(expanded(text) == names);
}

TEST_CASE("expand_hostlist: refuses what is malformed and names the place", "[slurm]") {
  const auto [text, why] = GENERATE(table<std::string, std::string>({
      {",", "a name is missing at character 1"},
      {"a,", "a name is missing at character 3"},
      {",a", "a name is missing at character 1"},
      {"a,,b", "a name is missing at character 3"},
      {"a b", "' ' is not allowed at character 2"},
      {"a\n", "byte 0x0a is not allowed at character 2"},
      {"umlä", "byte 0xc3 is not allowed at character 4"},
      {"a;b", "';' is not allowed at character 2"},
      {"n]", "']' is not allowed at character 2"},
      {"-n", "a name starts with a letter or a digit, not with '-' at character 1"},
      {"[0-3]", "a name starts with a letter or a digit, not with '[' at character 1"},
      {"n[0-", "a number is missing at character 5"},
      {"n[", "a number is missing at character 3"},
      {"n[0-3", "'[' without its ']' at character 2"},
      {"n[0-3,", "a number is missing at character 7"},
      {"n[]", "a number is missing at character 3"},
      {"n[1,]", "a number is missing at character 5"},
      {"n[,1]", "a number is missing at character 3"},
      {"n[1--2]", "a number is missing at character 5"},
      {"n[1-2-3]", "'-' is not allowed between brackets at character 6"},
      {"n[a]", "a number is missing at character 3"},
      {"n[1x]", "'x' is not allowed between brackets at character 4"},
      {"n[1[2]]", "'[' is not allowed between brackets at character 4"},
      {"n[3-1]", "the range 3-1 runs backwards at character 3"},
      {"n[1,9-5]", "the range 9-5 runs backwards at character 5"},
      {"n[01-5]", "the ends of 01-5 have different zero padding at character 3"},
      {"n[1-010]", "the ends of 1-010 have different zero padding at character 3"},
      {"n[1-3]x", "a name must end with its last ']': text after it at character 7"},
      {"r[0-1]n[0-1]b", "a name must end with its last ']': text after it at character 13"},
      {"n9999999999999999999", "a number of more than 18 digits at character 1"},
      {"n[9999999999999999999]", "a number of more than 18 digits at character 3"},
      {"n99999999999[99999999]", "a number of more than 18 digits at character 1"},
  }));
  INFO(text);
  const auto names = expand_hostlist(text);
  REQUIRE_FALSE(names);
  CHECK(names.error().kind == ErrorKind::Invalid);
  CHECK_THAT(names.error().what, EndsWith(why));
}

TEST_CASE("expand_hostlist: takes kMaxHosts hosts and refuses one more before it expands",
          "[slurm]") {
  CHECK(expand_hostlist("n[0-65535]")->size() == kMaxHosts);
  CHECK(expand_hostlist("r[0-255]n[0-255]")->size() == kMaxHosts);
  const auto text = GENERATE(as<std::string>{},
                             "n[0-65536]",
                             "a,n[0-65535]",
                             "r[0-255]n[0-256]",
                             "n[0-999999999999999999]",
                             "a[0-60000]b[0-60000]c[0-60000]d[0-60000]",
                             "a[0-65535,0-65535]");
  const auto names = expand_hostlist(text);
  REQUIRE_FALSE(names);
  CHECK_THAT(names.error().what, ContainsSubstring("more than 65536 hosts"));
}

TEST_CASE("expand_hostlist: a long or unprintable list does not flood the message", "[slurm]") {
  const auto names = expand_hostlist(std::string(10000, 'a') + "\x1b[1m");
  REQUIRE_FALSE(names);
  CHECK(names.error().what.size() < 200);
  CHECK(expand_hostlist(std::string("a\0b", 3)).error().what.find('\0') == std::string::npos);
}

TEST_CASE("fold_hostlist: sorts, drops duplicates and folds", "[slurm]") {
  CHECK(fold_hostlist({}).empty());
  CHECK(fold_hostlist({{"a"}}) == "a");
  CHECK(fold_hostlist({{"n-7"}, {"n-1"}, {"n-0"}, {"n-1"}, {"n-2"}}) == "n-[0-2,7]");
  CHECK(fold_hostlist({{"b1"}, {"a2"}, {"a1"}}) == "a[1-2],b1");
  CHECK(fold_hostlist({{"n08"}, {"n09"}, {"n10"}}) == "n[08-10]");
}

TEST_CASE("fold_hostlist: expand_hostlist gives the same nodes back, however many", "[slurm]") {
  const auto nodes = GENERATE(
      some_nodes("flex-", 0, 1999), some_nodes("flex-", 0, 7999, 2), some_nodes("r1-n", 90, 110));
  CHECK(*expand_hostlist(fold_hostlist(nodes)) == nodes);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/names.h"

#include "test/support/catch.h"

#include <set>
#include <string>

using namespace flex;

TEST_CASE("group names: the nodeset's, its further parts and the job's own", "[core]") {
  CHECK(nodeset_group_name("hpc", "a3u").text == "hpc-a3u");
  CHECK(nodeset_group_name("hpc", "a3u", 1).text == "hpc-a3u-2");
  CHECK(job_group_name("hpc", "a3u", 123).text == "hpc-a3u-j123");
  CHECK(job_group_name("hpc", "a3u", 123, 1).text == "hpc-a3u-j123-2");
}

TEST_CASE("group_name_prefix: every group name of the nodeset starts with it", "[core]") {
  for (const std::string& nodeset :
       {std::string("a3u"), std::string(48, 'n'), std::string(70, 'n'), std::string("a--")}) {
    const auto prefix = group_name_prefix("My_Cluster", nodeset);
    INFO(nodeset);
    CHECK_THAT(nodeset_group_name("My_Cluster", nodeset).text, StartsWith(prefix));
    CHECK_THAT(nodeset_group_name("My_Cluster", nodeset, 3).text, StartsWith(prefix));
    CHECK_THAT(job_group_name("My_Cluster", nodeset, 4294967295U, 1).text, StartsWith(prefix));
  }
}

TEST_CASE("to_rfc1035: whatever goes in, a valid name comes out", "[core]") {
  const auto text = GENERATE(as<std::string>{},
                             "a",
                             "",
                             "-",
                             "---",
                             "9lives",
                             "Upper",
                             "under_score",
                             "ends-",
                             "umläut",
                             std::string(63, 'a'),
                             std::string(64, 'a'),
                             std::string(200, '-'),
                             std::string(61, 'a') + "--b");
  INFO(text);
  CHECK(is_rfc1035(to_rfc1035(text)));
}

TEST_CASE("to_rfc1035: leaves a valid name alone and never maps two texts to one name", "[core]") {
  CHECK(to_rfc1035("hpc-a3u") == "hpc-a3u");
  CHECK(to_rfc1035(std::string(63, 'a')) == std::string(63, 'a'));
  std::set<std::string> seen;
  int texts = 0;
  for (const auto& base :
       {std::string(70, 'a'), std::string(62, 'b'), std::string("Under_Score")}) {
    for (int i = 0; i < 500; ++i, ++texts) seen.insert(to_rfc1035(base + "-" + std::to_string(i)));
  }
  for (const char* text : {"a_b", "a-b", "a.b", "A-B", "a b"}) {
    seen.insert(to_rfc1035(text));
    ++texts;
  }
  CHECK(seen.size() == static_cast<std::size_t>(texts));
}

TEST_CASE("request_name: the same request has the same name, any other another", "[core]") {
  const RequestKey key{.cluster = "hpc",
                       .nodeset = "a3u",
                       .job = 12,
                       .restart_count = 0,
                       .attempt = 1,
                       .nodes = {{"n-0"}, {"n-1"}}};
  const auto name = request_name(key);
  CHECK(name == request_name(key));
  CHECK_THAT(name.text, StartsWith("j12-"));
  CHECK(is_rfc1035(name.text));
  std::set<std::string> names{name.text};
  auto other = key;
  other.restart_count = 1;
  names.insert(request_name(other).text);
  other = key;
  other.attempt = 2;
  names.insert(request_name(other).text);
  other = key;
  other.cluster = "hpd";
  names.insert(request_name(other).text);
  other = key;
  other.nodes = {{"n-0n-1"}};
  names.insert(request_name(other).text);
  other = key;
  other.nodes = {{"n-1"}};
  names.insert(request_name(other).text);
  CHECK(names.size() == 6);
  other = key;
  other.job = 4294967295U;
  CHECK(is_rfc1035(request_name(other).text));
}

TEST_CASE("is_owned: only the exact cluster and nodeset", "[core]") {
  const auto mark = ownership_mark("hpc", "a3u");
  CHECK(mark == "slurm-flex-start cluster=hpc nodeset=a3u");
  CHECK(is_owned(mark, "hpc", "a3u"));
  CHECK(is_owned(mark + " job=12", "hpc", "a3u"));
  CHECK_FALSE(is_owned(mark + "2", "hpc", "a3u"));
  CHECK_FALSE(is_owned(mark, "hpc", "a3"));
  CHECK_FALSE(is_owned(mark, "hp", "a3u"));
  CHECK_FALSE(is_owned("", "hpc", "a3u"));
  CHECK_FALSE(is_owned("x " + mark, "hpc", "a3u"));
}

TEST_CASE("cluster_name_prefix: every group name of the cluster starts with it", "[core]") {
  CHECK(cluster_name_prefix("hpc") == "hpc-");
  CHECK(cluster_name_prefix("hpc-a") == "hpc-a-");
  CHECK(cluster_name_prefix("My_Cluster") == "my-cluster-");
  CHECK(cluster_name_prefix("9lives") == "x9lives-");
  for (const std::string& cluster : {std::string("hpc"),
                                     std::string("hpc-a"),
                                     std::string("my_cluster"),
                                     std::string("ends_"),
                                     std::string("ends-"),
                                     std::string("_"),
                                     std::string("9lives"),
                                     std::string(40, 'c'),
                                     std::string(53, 'c'),
                                     std::string(54, 'c'),
                                     std::string(55, 'c'),
                                     std::string(50, 'c') + "----" + "c",
                                     std::string(100, 'c')}) {
    for (const std::string& nodeset : {std::string("a3u"),
                                       std::string("a_b"),
                                       std::string("-"),
                                       std::string(8, 'n'),
                                       std::string(70, 'n')}) {
      const auto prefix = cluster_name_prefix(cluster);
      INFO(cluster << " " << nodeset);
      CHECK_THAT(nodeset_group_name(cluster, nodeset).text, StartsWith(prefix));
      CHECK_THAT(nodeset_group_name(cluster, nodeset, 1).text, StartsWith(prefix));
      CHECK_THAT(job_group_name(cluster, nodeset, 4294967295U, 1).text, StartsWith(prefix));
    }
  }
}

TEST_CASE("owned_nodeset: the nodeset of a mark of exactly this cluster", "[core]") {
  CHECK(owned_nodeset(ownership_mark("hpc", "a3u"), "hpc") == "a3u");
  CHECK(owned_nodeset(ownership_mark("hpc", "a3u") + " job=12", "hpc") == "a3u");
  CHECK(owned_nodeset(ownership_mark("my_c", "a_b"), "my_c") == "a_b");
  // "hpc" with nodeset "a-b" and "hpc-a" with nodeset "b" have one group name, two marks.
  CHECK(owned_nodeset(ownership_mark("hpc", "a-b"), "hpc") == "a-b");
  CHECK_FALSE(owned_nodeset(ownership_mark("hpc-a", "b"), "hpc"));
  CHECK_FALSE(owned_nodeset(ownership_mark("hpc", "a-b"), "hpc-a"));
  CHECK_FALSE(owned_nodeset("", "hpc"));
  CHECK_FALSE(owned_nodeset(ownership_mark("hpc", ""), "hpc"));
  CHECK_FALSE(owned_nodeset("my " + ownership_mark("hpc", "a3u"), "hpc"));
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/urls.h"

#include "test/support/catch.h"

#include <tuple>

using namespace flex;

TEST_CASE("urls: build paths and encode what does not belong in them", "[gce]") {
  CHECK(project_url("https://c.example", "p1") == "https://c.example/compute/v1/projects/p1");
  CHECK(project_url("https://c.example", "example.com:p1") ==
        "https://c.example/compute/v1/projects/example.com:p1");
  CHECK(group_path("r1", {"hpc-a"}) == "/regions/r1/instanceGroupManagers/hpc-a");
  CHECK(group_path("r1", {"a/../b?x#y"}) == "/regions/r1/instanceGroupManagers/a%2F..%2Fb%3Fx%23y");
  CHECK(request_path("r1", {"g"}, {"j1-x"}) ==
        "/regions/r1/instanceGroupManagers/g/resizeRequests/j1-x");
  CHECK(operation_path("r1", "op 1") == "/regions/r1/operations/op%201");
}

TEST_CASE("urls: with_query leaves out what is empty and encodes the rest", "[gce]") {
  CHECK(with_query("/p", {}) == "/p");
  CHECK(with_query("/p", {{"a", ""}}) == "/p");
  CHECK(with_query("/p", {{"filter", "name eq \"x.*\""}, {"pageToken", ""}, {"n", "5"}}) ==
        "/p?filter=name%20eq%20%22x.%2A%22&n=5");
  CHECK(with_query("/p?a=b", {{"fields", "items(a,b/c)"}}) == "/p?a=b&fields=items(a,b/c)");
  CHECK(with_query("/p", {{"pageToken", "a+b&c=d%"}}) == "/p?pageToken=a%2Bb%26c%3Dd%25");
}

TEST_CASE("urls: a template's name becomes a URL", "[gce]") {
  CHECK(template_url("p1", "t") == "projects/p1/global/instanceTemplates/t");
  CHECK(template_url("p1", "regions/r/instanceTemplates/t") ==
        "projects/p1/regions/r/instanceTemplates/t");
  CHECK(template_url("p1", "global/instanceTemplates/t") ==
        "projects/p1/global/instanceTemplates/t");
  const std::string full =
      "https://www.googleapis.com/compute/v1/projects/q/global/"
      "instanceTemplates/t";
  CHECK(template_url("p1", full) == full);
  CHECK(template_url("p1", "projects/q/global/instanceTemplates/t") ==
        "projects/q/global/instanceTemplates/t");
  CHECK(zone_url("p1", "us-central1-a") == "projects/p1/zones/us-central1-a");
  CHECK(last_part("a/b/c") == "c");
  CHECK(last_part("c") == "c");
  CHECK(last_part("a/").empty());
}

TEST_CASE("urls: a VM's zone comes from its URL", "[gce]") {
  CHECK(zone_of("https://www.googleapis.com/compute/v1/projects/p1/zones/us-central1-a/instances/"
                "a3u-0") == "us-central1-a");
  CHECK(zone_of("projects/p1/zones/r1-b/instances/n") == "r1-b");
  CHECK(zone_of("zones/r1-b/instances/n") == "r1-b");
  CHECK(zone_of("").empty());
  CHECK(zone_of("n").empty());
  CHECK(zone_of("projects/myzones/r1-b").empty());
  CHECK(serial_path("r1-b", "n") == "/zones/r1-b/instances/n/serialPort");
  CHECK(serial_path("r1/b", "n?x") == "/zones/r1%2Fb/instances/n%3Fx/serialPort");
}

TEST_CASE("urls: the name filter is a pattern of the prefix", "[gce]") {
  CHECK(name_filter("").empty());
  CHECK(name_filter("hpc-a3u") == "name eq \"hpc-a3u.*\"");
  CHECK(name_filter("a\"b(c") == "name eq \"a.b.c.*\"");
}

TEST_CASE("urls: an endpoint is https, or http to loopback", "[gce]") {
  const auto [given, expected] = GENERATE(table<std::string, std::string>({
      {"https://compute.googleapis.com", "https://compute.googleapis.com"},
      {"https://compute.googleapis.com/", "https://compute.googleapis.com"},
      {"https://compute.googleapis.com/compute/v1/", "https://compute.googleapis.com"},
      {"HTTPS://Compute.example:8443", "HTTPS://Compute.example:8443"},
      {"http://127.0.0.1:8080", "http://127.0.0.1:8080"},
      {"http://127.1.2.3", "http://127.1.2.3"},
      {"http://localhost:1", "http://localhost:1"},
      {"http://[::1]:8080/", "http://[::1]:8080"},
  }));
  CAPTURE(given);
  const auto endpoint = parse_endpoint(given);
  REQUIRE(endpoint);
  CHECK(*endpoint == expected);
}

TEST_CASE("urls: an endpoint that could send a token elsewhere is refused", "[gce]") {
  const std::string given = GENERATE(as<std::string>{},
                                     "",
                                     "compute.googleapis.com",
                                     "ftp://localhost",
                                     "file:///etc/passwd",
                                     "http://compute.googleapis.com",
                                     "http://127.0.0.1.evil.example",
                                     "http://127.evil.example",
                                     "http://localhost.evil.example",
                                     "http://localhost@evil.example",
                                     "http://127.0.0.1:80@evil.example/",
                                     "http://evil.example\\@localhost",
                                     "http://evil.example#localhost",
                                     "http://[::1",
                                     "http://[::1]x",
                                     "http://localhost:port",
                                     "http://localhost:",
                                     "http:///x",
                                     "https://a b",
                                     "https://a\nHost: b",
                                     "https://a/?x=y");
  CAPTURE(given);
  const auto endpoint = parse_endpoint(given);
  REQUIRE_FALSE(endpoint);
  CHECK(endpoint.error().kind == ErrorKind::Invalid);
}

TEST_CASE("urls: a zone is its region's", "[gce]") {
  CHECK(is_zone_of("us-central1-a", "us-central1"));
  CHECK_FALSE(is_zone_of("us-central1-a", "us-central"));
  CHECK_FALSE(is_zone_of("us-central1-a", ""));
  CHECK_FALSE(is_zone_of("us-central1", "us-central1"));
  CHECK_FALSE(is_zone_of("", "us-central1"));
}

TEST_CASE("urls: a description's prefix becomes a pattern that cannot end its string", "[gce]") {
  CHECK(description_filter("slurm-flex-start cluster=hpc_1 nodeset=") ==
        "description eq \"slurm-flex-start cluster=hpc_1 nodeset=.*\"");
  CHECK(description_filter("a\"b\\(") == "description eq \"a.b...*\"");
}

TEST_CASE("urls: a policy is named by its region", "[gce]") {
  CHECK(policy_path("r1", "p") == "/regions/r1/resourcePolicies/p");
  CHECK(policy_url("pr", "r1", "p") == "projects/pr/regions/r1/resourcePolicies/p");
}

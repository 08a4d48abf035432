// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/shapes.h"

#include "lib/config/keys.h"
#include "test/support/catch.h"

#include <csignal>
#include <string>

using namespace flex;

TEST_CASE("is_zone: takes zones and nothing near them", "[config]") {
  const auto [text, is_good] = GENERATE(table<std::string, bool>({
      {"us-central1-a", true},
      {"northamerica-northeast2-c", true},
      {"us-south1-ai1b", true},
      {"me-central12-b", true},
      {"us-central1", false},
      {"us-central-a", false},
      {"us-central1-", false},
      {"us-central1-1", false},
      {"us-central1-ab", false},
      {"us-central1-aib", false},
      {"US-central1-a", false},
      {"-central1-a", false},
      {"us-1-a", false},
      {"", false},
      {"-", false},
      {"a", false},
  }));
  INFO(text);
  CHECK(is_zone(text) == is_good);
}

TEST_CASE("region_of: drops the zone's letter", "[config]") {
  CHECK(region_of("us-central1-a") == "us-central1");
  CHECK(region_of("us-south1-ai1b") == "us-south1");
}

TEST_CASE("endpoint: https to anywhere, http only to this machine", "[config]") {
  const auto [text, is_good] = GENERATE(table<std::string, bool>({
      {"https://compute.googleapis.com", true},
      {"https://compute.googleapis.com/", true},
      {"https://compute.example:8443", true},
      {"http://127.0.0.1:8080", true},
      {"http://127.255.0.9", true},
      {"http://localhost:1", true},
      {"http://[::1]:8080", true},
      {"http://[::1]", true},
      {"http://[::2]", false},
      {"http://128.0.0.1", false},
      {"http://127.0.0.1.example.com", false},
      {"http://127.0.0.256", false},
      {"http://127.0.0", false},
      {"http://127.1", false},
      {"http://0127.0.0.1", false},
      {"http://127.0.0.1@example.com", false},
      {"http://user:127.0.0.1@example.com", false},
      {"http://localhost.example.com", false},
      {"http://localhost:0", false},
      {"http://localhost:", false},
      {"http://localhost:65536", false},
      {"http://example.com#127.0.0.1", false},
      {"http://example.com?127.0.0.1", false},
      {"http://", false},
      {"https://", false},
      {"https://a b", false},
      {"https://a/compute/v1", false},
      {"HTTP://127.0.0.1", false},
      {"ftp://127.0.0.1", false},
      {"127.0.0.1", false},
      {"", false},
  }));
  INFO(text);
  CHECK(why_bad_endpoint(text).empty() == is_good);
}

TEST_CASE("instance_template: name, path or URL", "[config]") {
  const auto [text, is_good, region] = GENERATE(table<std::string, bool, std::string>({
      {"a3u-flex", true, ""},
      {"global/instanceTemplates/t", true, ""},
      {"projects/my-project/global/instanceTemplates/t", true, ""},
      {"projects/example.com:my-project/global/instanceTemplates/t", true, ""},
      {"regions/us-east1/instanceTemplates/t", true, "us-east1"},
      {"projects/p/regions/us-east1/instanceTemplates/t", true, "us-east1"},
      {"https://www.googleapis.com/compute/v1/projects/p/global/instanceTemplates/t", true, ""},
      {"https://compute.googleapis.com/compute/v1/projects/p/regions/us-east1/instanceTemplates/t",
       true,
       "us-east1"},
      {"http://127.0.0.1:80/compute/v1/projects/p/global/instanceTemplates/t", true, ""},
      {"http://example.com/compute/v1/projects/p/global/instanceTemplates/t", false, ""},
      {"https://www.googleapis.com/compute/v1/global/instanceTemplates/t", false, ""},
      {"https://www.googleapis.com/compute/beta/projects/p/global/instanceTemplates/t", false, ""},
      {"projects/p/zones/us-east1-b/instanceTemplates/t", false, ""},
      {"regions/us-east1-b/instanceTemplates/t", false, "us-east1-b"},
      {"global/instanceTemplates/", false, ""},
      {"global/instanceTemplates/T", false, ""},
      {"global/instanceTemplates/t/x", false, ""},
      {"projects//global/instanceTemplates/t", false, ""},
      {"projects/p", false, ""},
      {"Template", false, ""},
      {"", false, ""},
  }));
  INFO(text);
  CHECK(is_template(text) == is_good);
  CHECK(template_region(text) == region);
}

TEST_CASE("listen: host and port, or off", "[config]") {
  const auto [text, is_good] = GENERATE(table<std::string, bool>({
      {"127.0.0.1:9762", true},
      {"off", true},
      {"Off", false},
      {"0.0.0.0:0", true},
      {"[::]:9762", true},
      {"login-1:9762", true},
      {":9762", false},
      {"9762", false},
      {"127.0.0.1", false},
      {"127.0.0.1:", false},
      {"127.0.0.1:x", false},
      {"127.0.0.1:65536", false},
      {"::1:9762", false},
      {"[::1]9762", false},
      {"[::1", false},
      {"[]:1", false},
  }));
  INFO(text);
  CHECK(is_listen_setting(text) == is_good);
  CHECK(parse_listen(text).has_value() == (is_good && text != "off"));
}

TEST_CASE("listen: who can reach it", "[config]") {
  const auto [text, host, port, is_loopback] = GENERATE(table<std::string, std::string, int, bool>({
      {"127.0.0.1:9762", "127.0.0.1", 9762, true},
      {"127.1.2.3:0", "127.1.2.3", 0, true},
      {"localhost:1", "localhost", 1, true},
      {"[::1]:9762", "::1", 9762, true},
      {"[::]:9762", "::", 9762, false},
      {"0.0.0.0:9762", "0.0.0.0", 9762, false},
      {"127.example.com:1", "127.example.com", 1, false},
      {"login-1:9762", "login-1", 9762, false},
  }));
  INFO(text);
  const auto address = parse_listen(text);
  REQUIRE(address);
  CHECK(address->host == host);
  CHECK(address->port == port);
  CHECK(address->is_loopback == is_loopback);
}

TEST_CASE("Host header: a name of this machine itself", "[config]") {
  const auto [text, is_good] = GENERATE(table<std::string, bool>({
      {"localhost", true},
      {"LocalHost:9762", true},
      {"127.0.0.1:9762", true},
      {"127.9.9.9", true},
      {"[::1]", true},
      {"[::1]:9762", true},
      {"", false},
      {"localhost.", false},
      {"localhost.evil.com", false},
      {"evil.com:9762", false},
      {"127.0.0.1.evil.com", false},
      {"127.0.0.256", false},
      {"0.0.0.0", false},
      {"localhost@evil.com", false},
      {"localhost:9762:1", false},
      {"localhost/", false},
      {" localhost", false},
  }));
  INFO(text);
  CHECK(is_loopback_authority(text) == is_good);
}

TEST_CASE("cluster and project: as Slurm and Google name them", "[config]") {
  CHECK(is_cluster_name("hpc_1-b"));
  CHECK_FALSE(is_cluster_name("HPC"));
  CHECK_FALSE(is_cluster_name(""));
  CHECK_FALSE(is_cluster_name("-hpc"));
  CHECK_FALSE(is_cluster_name(std::string(41, 'a')));
  CHECK(is_project("my-project"));
  CHECK(is_project("example.com:my-project"));
  CHECK_FALSE(is_project("my project"));
  CHECK_FALSE(is_project("a/b"));
  CHECK_FALSE(is_project(":a"));
}

TEST_CASE("accelerator_topology: two or three sides", "[config]") {
  const auto [text, is_good] = GENERATE(table<std::string, bool>({
      {"4x4", true},
      {"2x2x4", true},
      {"1x72", true},
      {"4", false},
      {"4x", false},
      {"x4", false},
      {"0x4", false},
      {"04x4", false},
      {"4X4", false},
      {"4x4x4x4", false},
      {"", false},
  }));
  INFO(text);
  CHECK(is_topology(text) == is_good);
}

TEST_CASE("signal_number: names of signals that can be caught", "[config]") {
  CHECK(signal_number("SIGTERM") == SIGTERM);
  CHECK(signal_number("None") == 0);
  CHECK_FALSE(signal_number("KILL"));
  CHECK_FALSE(signal_number("STOP"));
  CHECK_FALSE(signal_number("SIG"));
  CHECK_FALSE(signal_number("15"));
  CHECK_FALSE(signal_number(""));
  CHECK(is_deaf_signal("SIGKILL"));
  CHECK_FALSE(is_deaf_signal("TERM"));
}

TEST_CASE("nearest: finds the word that was meant, or none", "[config]") {
  const std::vector<std::string_view> words{"zones", "nodes", "mode", "boot_timeout"};
  CHECK(nearest("zone", words) == "zones");
  CHECK(nearest("Zones", words) == "zones");
  CHECK(nearest("boot-timeout", words) == "boot_timeout");
  CHECK(nearest("boot_time", words) == "boot_timeout");
  CHECK(nearest("colour", words).empty());
  CHECK(nearest("", words).empty());
  CHECK(nearest(std::string(1000, 'z'), words).empty());
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/load.h"

#include "test/support/catch.h"
#include "test/unit/config/support.h"

using namespace flex;
using namespace flex::test;

namespace {

Config good(const std::string& text) {
  auto loaded = parse_config(text, "f");
  for (const Problem& problem : loaded.problems) UNSCOPED_INFO(problem.text());
  REQUIRE(loaded.ok());
  return loaded.config;
}

}  // namespace

TEST_CASE("parse_config: reads the full example of the design", "[config]") {
  const Config config = good(read_text(source_path("test/data/config/good/design.yaml")));
  CHECK(config.file == "f");
  CHECK(config.cluster == "hpc");
  CHECK(config.project == "my-project");
  CHECK(config.region == "us-central1");
  CHECK(config.api.endpoint == "https://compute.googleapis.com");
  CHECK(config.api.max_in_flight == 16);
  CHECK(config.credentials == "auto");
  CHECK(config.sweeper.interval == 15s);
  CHECK(config.sweeper.orphan_grace == 3min);
  CHECK(config.sweeper.empty_mig_grace == 10min);
  CHECK(config.sweeper.max_deletes_per_round == 200);
  CHECK(config.sweeper.listen == "127.0.0.1:9762");
  REQUIRE(config.nodesets.size() == 1);
  const NodesetConfig& a3u = config.nodesets[0];
  CHECK(a3u.name == "a3u");
  CHECK(a3u.nodes.size() == 64);
  CHECK(a3u.nodes[63].text == "a3u-63");
  CHECK(a3u.static_nodes == std::vector<NodeName>{{"a3u-0"}, {"a3u-1"}});
  CHECK(a3u.instance_template == "a3u-flex");
  CHECK(a3u.zones == std::vector<std::string>{"us-central1-a", "us-central1-b"});
  CHECK(a3u.mode == Mode::Queued);
  CHECK(a3u.dws_flex.enabled);
  CHECK(a3u.dws_flex.max_run_duration == 7 * 24h);
  CHECK(a3u.dws_flex.use_job_duration);
  CHECK(a3u.run_duration_margin == 15min);
  CHECK(a3u.provision_timeout == 0s);
  CHECK(a3u.boot_timeout == 15min);
  CHECK(a3u.placement.max_distance == 2);
}

TEST_CASE("parse_config: the smallest file has the defaults", "[config]") {
  const Config config = good(minimal());
  CHECK(config.cluster.empty());
  CHECK(config.project.empty());
  CHECK(config.api.call_timeout == 30s);
  CHECK(config.api.run_timeout == 120s);
  CHECK(config.warnings.empty());
  const NodesetConfig& nodeset = config.nodesets.at(0);
  CHECK(nodeset.mig_scope == MigScope::Nodeset);
  CHECK(nodeset.dws_flex.max_run_duration == kMaxRunDuration);
  CHECK(nodeset.on_timeout == OnTimeout::Requeue);
  CHECK(nodeset.max_boot_failures == 3);
  CHECK(nodeset.incomplete_timeout == 10min);
  CHECK(nodeset.retry.limit == 3);
  CHECK(nodeset.retry.base == 60s);
  CHECK(nodeset.retry.max == 30min);
  CHECK(config.sweeper.finished_request_grace == 1h);
  CHECK(config.sweeper.state_dir.empty());
  CHECK(nodeset.zones.empty());
  CHECK(config.api.max_active_requests == 100);
  CHECK(nodeset.mode == Mode::Queued);
  CHECK_FALSE(nodeset.placement.is_wanted());
  CHECK(nodeset.max_nodes == 0);
  CHECK(nodeset.race == 1);
  CHECK(nodeset.on_stockout.empty());
  CHECK(nodeset.resubmit_after == 0s);
  CHECK(nodeset.lease_warning == 10min);
  CHECK(nodeset.lease_signal == SIGURG);
  CHECK(nodeset.repair_reasons == default_repair_reasons());
  CHECK(nodeset.max_repairs == 3);
}

TEST_CASE("parse_config: every duration but the run duration may be a second", "[config]") {
  const Config config =
      good(minimal("    run_duration_margin: 0\n    provision_timeout: 1s\n    boot_timeout: 1\n"
                   "    dws_flex: {max_run_duration: 600}\n"
                   "    incomplete_timeout: 1s\n    retry: {limit: 0, base: 1s, max: 1s}\n"
                   "    resubmit_after: 1s\n    lease_warning: 1s\n"
                   "    on_stockout: [{wait: 1s, mode: individual}]\n",
                   "sweeper: {interval: 1s, orphan_grace: 1s, empty_mig_grace: 1s,\n"
                   "          finished_request_grace: 1s, state_dir: /var/flex}\n"
                   "api: {call_timeout: 1s, run_timeout: 1s}\n"));
  CHECK(config.sweeper.interval == 1s);
  CHECK(config.sweeper.finished_request_grace == 1s);
  CHECK(config.sweeper.state_dir == "/var/flex");
  CHECK(config.nodesets[0].retry.limit == 0);
  CHECK(config.nodesets[0].retry.max == 1s);
  CHECK(config.api.run_timeout == 1s);
  CHECK(config.nodesets[0].resubmit_after == 1s);
  CHECK(config.nodesets[0].lease_warning == 1s);
  CHECK(config.nodesets[0].on_stockout.at(0).wait == 1s);
  CHECK(config.nodesets[0].boot_timeout == 1s);
  CHECK(config.nodesets[0].incomplete_timeout == 1s);
  CHECK(config.nodesets[0].run_duration_margin == 0s);
  CHECK(config.nodesets[0].dws_flex.max_run_duration == 10min);
}

TEST_CASE("parse_config: a nodeset wins over the defaults key by key", "[config]") {
  const Config config = good(
      "defaults:\n"
      "  instance_template: common\n"
      "  zones: [us-central1-a, us-central1-b]\n"
      "  dws_flex: {max_run_duration: 1d, use_job_duration: false}\n"
      "  boot_timeout: 5m\n"
      "  retry: {limit: 5, base: 2m}\n"
      "nodesets:\n"
      "  plain: {nodes: p-1}\n"
      "  own:\n"
      "    nodes: o-1\n"
      "    instance_template: special\n"
      "    zones: [us-central1-c]\n"
      "    dws_flex: {max_run_duration: 2d}\n"
      "    boot_timeout: 6m\n"
      "    retry: {limit: 7, max: 1h}\n");
  const NodesetConfig& plain = config.nodesets.at(0);
  CHECK(plain.instance_template == "common");
  CHECK(plain.zones.size() == 2);
  CHECK(plain.dws_flex.max_run_duration == 24h);
  CHECK_FALSE(plain.dws_flex.use_job_duration);
  CHECK(plain.boot_timeout == 5min);
  CHECK(plain.retry.limit == 5);
  CHECK(plain.retry.base == 2min);
  const NodesetConfig& own = config.nodesets.at(1);
  CHECK(own.instance_template == "special");
  CHECK(own.zones == std::vector<std::string>{"us-central1-c"});
  CHECK(own.dws_flex.max_run_duration == 48h);
  CHECK_FALSE(own.dws_flex.use_job_duration);
  CHECK(own.boot_timeout == 6min);
  CHECK(own.retry.limit == 7);
  CHECK(own.retry.base == 2min);
  CHECK(own.retry.max == 1h);
  CHECK(config.region == "us-central1");
}

TEST_CASE("parse_config: knows the place of every node and of no other", "[config]") {
  const Config config = good(minimal("  b: {nodes: 'b-[7,5]', instance_template: t}\n"));
  REQUIRE(config.find({"b-5"}) != nullptr);
  CHECK(config.find({"b-5"})->nodeset == 1);
  const std::size_t index = config.find({"b-5"})->index;
  CHECK(config.nodesets[1].nodes.at(index).text == "b-5");
  CHECK(config.find({"a-3"})->nodeset == 0);
  CHECK(config.find({"a-3"})->index == 3);
  CHECK(config.find({"a-4"}) == nullptr);
}

TEST_CASE("parse_config: knows of every node whether it is static", "[config]") {
  const Config config = good(minimal("    static_nodes: a-[1-2]\n"));
  CHECK_FALSE(config.find({"a-0"})->is_static);
  CHECK(config.find({"a-1"})->is_static);
  CHECK(config.find({"a-2"})->is_static);
  CHECK_FALSE(config.find({"a-3"})->is_static);
}

TEST_CASE("parse_config: takes an endpoint with a slash at its end without the slash", "[config]") {
  const Config config = good(minimal("", "api: {endpoint: 'http://127.0.0.1:8080/'}\n"));
  CHECK(config.api.endpoint == "http://127.0.0.1:8080");
}

TEST_CASE("parse_config: says what it saw in the file's order, whatever finds it", "[config]") {
  const auto seen = problems_of(
      "nodesets:\n  a: {nodes: a-1, instance_template: t, static_nodes: a-2}\nregion: x\nzzzz: "
      "1\n");
  REQUIRE(seen.size() == 3);
  CHECK_THAT(seen[0], StartsWith("2:"));
  CHECK_THAT(seen[1], StartsWith("3:"));
  CHECK_THAT(seen[2], StartsWith("4:"));
}

TEST_CASE("parse_config: says once what is wrong in the defaults of many nodesets", "[config]") {
  const auto seen = problems_of(
      "region: us-central1\ndefaults: {instance_template: t, zones: [us-east1-b], reservation: r}\n"
      "nodesets:\n  a: {nodes: a-1}\n  b: {nodes: b-1}\n  c: {nodes: c-1}\n");
  CHECK(seen.size() == 2);
}

TEST_CASE("parse_config: counts the rest of very many problems", "[config]") {
  std::string text = minimal();
  for (int i = 0; i < 1000; ++i) text += "unknown" + std::to_string(i) + ": 1\n";
  const auto seen = problems_of(text);
  REQUIRE(seen.size() == 201);
  CHECK_THAT(seen.back(), ContainsSubstring("and 800 more problems"));
}

TEST_CASE("parse_config: refuses what would eat the memory or the stack", "[config]") {
  const auto [text, what] = GENERATE(table<std::string, std::string>({
      {std::string((1U << 20U) + 1, ' '), "larger than 1 MiB"},
      {"project: " + std::string(500000, '['), ""},
      {"project: " + std::string(500000, '{'), ""},
      {std::string(500000, '['), "too deeply"},
      {[] {
         std::string deep;
         for (int i = 0; i < 700; ++i)
           deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
         return deep;
       }(),
       "too deeply"},
      {"zones: [" +
           [] {
             std::string many;
             for (int i = 0; i < 60000; ++i) many += "a,";
             return many;
           }() +
           "a]\n",
       "too many values"},
  }));
  const auto seen = problems_of(text);
  REQUIRE_FALSE(seen.empty());
  CHECK_THAT(seen[0], ContainsSubstring(what));
}

TEST_CASE("parse_config: refuses a quote that is never closed", "[config]") {
  CHECK_FALSE(problems_of("project: 'my-project\n" + minimal()).empty());
  CHECK_FALSE(problems_of("project: \"my-project\n" + minimal()).empty());
}

TEST_CASE("parse_config: takes UTF-8 and nothing that only looks like it", "[config]") {
  const auto [text, is_good] = GENERATE(table<std::string, bool>({
      {"\xc3\xbc \xe2\x80\xa6 \xed\x9f\xbf \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf", true},
      {"\x80", false},
      {"\xc3", false},
      {"\xc3(", false},
      {"\xc0\xaf", false},
      {"\xe0\x9f\xbf", false},
      {"\xed\xa0\x80", false},
      {"\xf0\x8f\xbf\xbf", false},
      {"\xf4\x90\x80\x80", false},
      {"\xf5\x80\x80\x80", false},
      {"\xe2\x80", false},
  }));
  const auto seen = problems_of("# " + text + "\n" + minimal());
  CHECK(seen.empty() == is_good);
  if (!is_good) CHECK_THAT(seen.at(0), StartsWith("1:3: byte 0x"));
}

TEST_CASE("parse_config: bounds the nodes of all nodesets together", "[config]") {
  std::string text = "region: us-central1\ndefaults: {instance_template: t}\nnodesets:\n";
  for (int i = 0; i < 20; ++i) {
    const std::string name = "n" + std::to_string(i) + "x";
    text += "  " + name + ": {nodes: '" + name + "-[1-60000]'}\n";
  }
  const auto seen = problems_of(text);
  REQUIRE(seen.size() == 1);
  CHECK_THAT(seen[0], ContainsSubstring("nodes in all nodesets together"));
}

TEST_CASE("Problem: text has the place where there is one, and the hint in brackets", "[config]") {
  const Problem placed{.file = "f.yaml", .line = 12, .column = 5, .what = "bad", .hint = "do so"};
  CHECK(placed.text() == "f.yaml:12:5: bad (do so)");
  const Problem whole{.file = "f.yaml", .what = "bad"};
  CHECK(whole.text() == "f.yaml: bad");
}

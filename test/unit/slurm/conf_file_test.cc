// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/conf_file.h"

#include "test/support/catch.h"

#include <map>

namespace flex {
namespace {

SlurmConf parse(std::string_view text, const std::map<std::string, std::string>& files = {}) {
  return parse_slurm_conf(
      text, "/etc/slurm/slurm.conf", [&files](const std::string& path) -> Result<std::string> {
        const auto found = files.find(path);
        if (found == files.end()) return Error{ErrorKind::Invalid, "cannot read " + path};
        return found->second;
      });
}

TEST_CASE("slurm.conf: settings have their places, in any case, the last one counts", "[slurm]") {
  const SlurmConf conf = parse(
      "# ResumeRate=1\n"
      "ResumeRate = 0  SuspendRate=7 # SuspendRate=8\n"
      "\n"
      "resumerate=\"12 13\"\r\n");
  CHECK(conf.problems.empty());
  CHECK(conf.get("ResumeRate") == "12 13");
  CHECK(conf.place_of("RESUMERATE") == ConfPlace{"/etc/slurm/slurm.conf", 4});
  CHECK(conf.get("SuspendRate") == "7");
  CHECK(conf.place_of("SuspendRate").line == 2);
  CHECK(conf.find("SuspendTime") == nullptr);
  CHECK(conf.place_of("SuspendTime").line == 0);
}

TEST_CASE("slurm.conf: lines go on after a backslash, and # can be escaped", "[slurm]") {
  const SlurmConf conf = parse(
      "NodeName=a[0-1] \\\n"
      "  CPUs=4 State=CLOUD \\ # not a comment alone\n"
      "TreeWidth=2 ResumeProgram=/a\\#b\n"
      "Prolog=/x\\\\\n");
  REQUIRE(conf.nodes.size() == 1);
  CHECK(conf.nodes[0].name == "a[0-1]");
  CHECK(conf.nodes[0].get("STATE") == "CLOUD");
  CHECK(conf.nodes[0].place.line == 1);
  // The backslash before a comment goes on, too, as in Slurm: the comment is taken off first.
  CHECK(conf.nodes[0].get("TreeWidth") == "2");
  CHECK(conf.nodes[0].get("ResumeProgram") == "/a#b");
  CHECK(conf.get("Prolog") == "/x\\");
}

TEST_CASE("slurm.conf: DEFAULT lines fill in what later lines do not say", "[slurm]") {
  const SlurmConf conf = parse(
      "NodeName=DEFAULT State=CLOUD CPUs=8\n"
      "NodeName=a-[0-3]\n"
      "NodeName=b-0 State=UNKNOWN\n"
      "NodeName=default CPUs=2\n"
      "NodeName=c-0\n"
      "PartitionName=DEFAULT MaxTime=60\n"
      "PartitionName=p Nodes=a-[0-3]\n"
      "NodeSet=s Nodes=a-0\n"
      "DownNodes=a-1 State=DOWN\n");
  REQUIRE(conf.nodes.size() == 3);
  CHECK(conf.nodes[0].get("State") == "CLOUD");
  CHECK(conf.nodes[1].get("State") == "UNKNOWN");
  CHECK(conf.nodes[2].get("CPUs") == "2");
  CHECK(conf.nodes[2].get("State") == "CLOUD");
  REQUIRE(conf.partitions.size() == 1);
  CHECK(conf.partitions[0].get("MaxTime") == "60");
  CHECK(conf.partitions[0].has("nodes"));
  CHECK_FALSE(conf.partitions[0].has("State"));
  REQUIRE(conf.nodesets.size() == 1);
  CHECK(conf.settings.empty());
}

TEST_CASE("slurm.conf: included files have places of their own", "[slurm]") {
  const SlurmConf conf = parse(
      "ClusterName=hpc\ninclude nodes-%c.conf\nInclude /else/x.conf # why\nInclude gone.conf\n",
      {{"/etc/slurm/nodes-hpc.conf", "\nNodeName=a State=CLOUD\n"},
       {"/else/x.conf", "ResumeRate=0\n"}});
  REQUIRE(conf.nodes.size() == 1);
  CHECK(conf.nodes[0].place == ConfPlace{"/etc/slurm/nodes-hpc.conf", 2});
  CHECK(conf.place_of("ResumeRate") == ConfPlace{"/else/x.conf", 1});
  REQUIRE(conf.problems.size() == 1);
  CHECK(conf.problems[0].place.line == 4);
  CHECK(conf.problems[0].what == "cannot read /etc/slurm/gone.conf");
}

TEST_CASE("slurm.conf: names in an included file are those of its directory", "[slurm]") {
  const SlurmConf conf = parse("include sub/a.conf\ninclude b.conf\n",
                               {{"/etc/slurm/sub/a.conf", "include b.conf\ninclude more/c.conf\n"},
                                {"/etc/slurm/sub/b.conf", "A=1\n"},
                                {"/etc/slurm/sub/more/c.conf", "C=1\n"},
                                {"/etc/slurm/b.conf", "B=1\n"}});
  CHECK(conf.problems.empty());
  CHECK(conf.place_of("A") == ConfPlace{"/etc/slurm/sub/b.conf", 1});
  CHECK(conf.place_of("B") == ConfPlace{"/etc/slurm/b.conf", 1});
  CHECK(conf.place_of("C") == ConfPlace{"/etc/slurm/sub/more/c.conf", 1});
}

TEST_CASE("slurm.conf: a value may be empty in quotes only", "[slurm]") {
  const SlurmConf conf = parse("SuspendExcParts=\"\"\n");
  CHECK(conf.problems.empty());
  REQUIRE(conf.find("SuspendExcParts") != nullptr);
  CHECK(conf.get("SuspendExcParts").empty());
}

TEST_CASE("slurm.conf: a file that includes itself ends", "[slurm]") {
  const SlurmConf conf =
      parse("Include self.conf\n", {{"/etc/slurm/self.conf", "A=1\nInclude self.conf\n"}});
  REQUIRE(conf.problems.size() == 1);
  CHECK(conf.problems[0].what == "too many files that include each other");
}

TEST_CASE("slurm.conf: what is no setting is told with its line", "[slurm]") {
  const auto [text, what] = GENERATE(table<std::string, std::string>({
      {"A=1\nResumeRate 0\n", "'ResumeRate' is no Key=Value"},
      {"A=1\nResumeProgram=\"/x\n", "'ResumeProgram=\"/x' is no Key=Value"},
      {"A=1\nB=2 nonsense\n", "'nonsense' is no Key=Value"},
      {"A=1\nSuspendExcParts=\n", "'SuspendExcParts=' is no Key=Value"},
      {"A=1\nSuspendExcParts=  # none\n", "'SuspendExcParts=' is no Key=Value"},
  }));
  const SlurmConf conf = parse(text);
  REQUIRE(conf.problems.size() == 1);
  CHECK(conf.problems[0].what == what);
  CHECK(conf.problems[0].place.line == 2);
}

TEST_CASE("slurm.conf: words of a list", "[slurm]") {
  CHECK(has_word("a,Cloud", "cloud"));
  CHECK(has_word("cloud", "cloud"));
  CHECK_FALSE(has_word("cloudy,xcloud", "cloud"));
  CHECK_FALSE(has_word("", "cloud"));
}

}  // namespace
}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
// What the accounting has against a job that waits for its nodes.
#include "sweeper/accounting_limits.h"

#include "test/support/catch.h"

using namespace flex;
using namespace std::chrono_literals;

namespace {

/// User "ann" in account "physics" under "science" under the root; her job of two hours has QOS
/// "normal" and asks for four CPUs on two nodes.
struct Site {
  Site() {
    accounting.associations = {{.id = 1, .account = "root"},
                               {.id = 2, .parent_id = 1, .account = "science"},
                               {.id = 3, .parent_id = 2, .account = "physics"},
                               {.id = 4, .parent_id = 3, .user = "ann", .account = "physics"}};
    accounting.qos = {{.name = "normal"}, {.name = "part"}};
    ann().qos = {"normal", "high"};
    job.user = "ann";
    job.account = "physics";
    job.qos = "normal";
    job.association = 4;
    job.partition = "p";
    job.time_limit = 2h;
    job.tres_asked = "cpu=4,mem=100M,node=2,billing=4";
    job.tres_allocated = "cpu=8,node=2,billing=8";
  }

  Association& ann() { return accounting.associations[3]; }

  AccountingLimits& science() { return accounting.associations[1].limits; }

  AccountingLimits& qos() { return accounting.qos[0].limits; }

  AccountingLimits& part() { return accounting.qos[1].limits; }

  [[nodiscard]] std::vector<std::string> found(const std::string& partition_qos = "") const {
    std::vector<std::string> keys;
    for (const Obstacle& each : accounting_obstacles(accounting, enforced, job, partition_qos)) {
      CHECK(each.is_guess);
      keys.push_back(each.key);
    }
    return keys;
  }

  Accounting accounting{};
  Enforcement enforced{.associations = true, .limits = true, .qos = true};
  Job job{};
};

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE("accounting: nothing is in the way") {
  Site site;
  site.ann().limits = {.group_jobs = 1, .user_jobs = 1, .wall = 2h, .group_tres = {{"cpu", 4}}};
  site.science() = {.group_jobs = 1, .group_tres = {{"node", 2}, {"mem", 1}}};
  site.qos() = {.user_tres = {{"billing", 4}}};
  CHECK(site.found() == Keys{});
}

TEST_CASE("accounting: the association is gone") {
  Site site;
  site.accounting.associations.pop_back();
  CHECK(site.found() == Keys{"association"});
  SECTION("there is another for the same account, as slurmctld would find it") {
    site.accounting.associations.push_back(
        {.id = 9, .parent_id = 3, .user = "Ann", .account = "physics"});
    CHECK(site.found() == Keys{});
  }
  SECTION("one for another partition is none") {
    site.accounting.associations.push_back(
        {.id = 9, .parent_id = 3, .user = "ann", .account = "physics", .partition = "other"});
    CHECK(site.found() == Keys{"association"});
  }
  SECTION("a slurmctld that knows none at all has not reached its slurmdbd") {
    site.accounting.associations.clear();
    CHECK(site.found() == Keys{});
  }
  SECTION("a user whose name is not known may have another") {
    site.job.user.clear();
    CHECK(site.found() == Keys{});
  }
  SECTION("they are not enforced") {
    site.enforced = {};
    CHECK(site.found() == Keys{});
  }
}

TEST_CASE("accounting: no jobs at all are allowed") {
  Site site;
  SECTION("to the user") {
    site.ann().limits.user_jobs = 0;
    CHECK(site.found() == Keys{"MaxJobs of user ann in account physics"});
  }
  SECTION("MaxJobs of an account is for its users, who have it in their own records") {
    site.science().user_jobs = 0;
    CHECK(site.found() == Keys{});
  }
  SECTION("to an account above") {
    site.science().group_jobs = 0;
    CHECK(site.found() == Keys{"GrpJobs of account science"});
  }
  SECTION("to the QOS") {
    site.qos().account_jobs = 0;
    CHECK(site.found() == Keys{"MaxJobs of QOS normal"});
  }
  SECTION("a QOS that has a limit counts instead") {
    site.science().group_jobs = 0;
    site.ann().limits.user_jobs = 0;
    site.qos() = {.group_jobs = 5, .user_jobs = 5};
    CHECK(site.found() == Keys{});
  }
  SECTION("limits are not enforced") {
    site.enforced.limits = false;
    site.ann().limits.user_jobs = 0;
    CHECK(site.found() == Keys{});
  }
}

TEST_CASE("accounting: MaxWall") {
  Site site;
  site.ann().limits.wall = 1h;
  CHECK(site.found() == Keys{"MaxWall of user ann in account physics"});
  SECTION("with --time-min it may be shorter") {
    site.job.time_min = 1h;
    CHECK(site.found() == Keys{});
  }
  SECTION("a job without a limit is longer than any") {
    site.ann().limits.wall = 1000h;
    site.job.time_limit.reset();
    CHECK(site.found() == Keys{"MaxWall of user ann in account physics"});
  }
  SECTION("the QOS allows more") {
    site.qos().wall = 3h;
    CHECK(site.found() == Keys{});
  }
  SECTION("the partition's QOS counts before the job's") {
    site.part().wall = 1h;
    site.qos().wall = 3h;
    CHECK(site.found("part") == Keys{"MaxWall of QOS part"});
    site.accounting.qos[0].overrides_partition = true;
    CHECK(site.found("part") == Keys{});
  }
  SECTION("time that counts by half") {
    site.accounting.qos[0].time_factor = 0.5;
    CHECK(site.found() == Keys{});
  }
}

TEST_CASE("accounting: more than is allowed at all") {
  Site site;
  SECTION("to an account above") {
    site.science().group_tres = {{"cpu", 3}};
    CHECK(site.found() == Keys{"GrpTRES=cpu of account science"});
    site.accounting.qos[0].limit_factor = 2;
    CHECK(site.found() == Keys{});
  }
  SECTION("per job is for the user's own record") {
    site.science().job_tres = {{"node", 1}};
    CHECK(site.found() == Keys{});
    site.ann().limits.job_tres = {{"node", 1}};
    CHECK(site.found() == Keys{"MaxTRESPerJob=node of user ann in account physics"});
  }
  SECTION("per user and account in a QOS") {
    site.qos() = {.user_tres = {{"node", 1}}, .account_tres = {{"node", 0}}};
    CHECK(site.found() ==
          Keys{"MaxTRESPerUser=node of QOS normal", "MaxTRESPerAccount=node of QOS normal"});
  }
  SECTION("memory that is not allocated does not count") {
    site.science().group_tres = {{"mem", 1}};
    CHECK(site.found() == Keys{});
    site.job.tres_allocated = "mem=100M";
    CHECK(site.found() == Keys{"GrpTRES=mem of account science"});
  }
}

TEST_CASE("accounting: a QOS that the user may not use any more") {
  Site site;
  site.ann().qos = {"high"};
  CHECK(site.found() == Keys{"qos"});
  SECTION("not enforced") {
    site.enforced.qos = false;
    CHECK(site.found() == Keys{});
  }
  SECTION("slurmctld does not say which") {
    site.ann().qos.clear();
    CHECK(site.found() == Keys{});
  }
  SECTION("the QOS was deleted: slurmctld shows none") {
    site.ann().qos = {"normal"};
    site.job.qos.clear();
    CHECK(site.found() == Keys{"qos"});
  }
}

TEST_CASE("accounting: a tree with a ring in it ends") {
  Site site;
  site.accounting.associations[1].parent_id = 3;
  CHECK(site.found() == Keys{});
}

TEST_CASE("parse_tres") {
  CHECK(parse_tres("") == TresCounts{});
  CHECK(parse_tres("cpu=2,mem=100M,node=1,gres/gpu:h100=8") ==
        TresCounts{{"cpu", 2}, {"mem", 100}, {"node", 1}, {"gres/gpu:h100", 8}});
  CHECK(parse_tres("mem=4G") == TresCounts{{"mem", 4096}});
  CHECK(parse_tres("mem=2T") == TresCounts{{"mem", 2097152}});
  CHECK(parse_tres("mem=1.50G,mem=K,cpu=,=3x,cpu") == TresCounts{});
}

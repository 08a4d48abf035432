// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/job_note.h"

#include "test/support/catch.h"

using namespace flex;

TEST_CASE("with_note: replaces our part and keeps what others wrote", "[core]") {
  CHECK(with_note("", "hello") == "flex: hello");
  CHECK(with_note("flex: old", "new") == "flex: new");
  CHECK(with_note("billing=42", "new") == "billing=42 | flex: new");
  CHECK(with_note("billing=42 | flex: old", "new") == "billing=42 | flex: new");
  CHECK(with_note("a | b", "new") == "a | b | flex: new");
}

TEST_CASE("with_note: what others put behind ours stays", "[core]") {
  CHECK(with_note("flex: old | billing=42", "new") == "flex: new | billing=42");
  CHECK(with_note("flex: old\nbilling=42", "new") == "flex: new\nbilling=42");
  CHECK(with_note("a | flex: old | b | c", "new") == "a | flex: new | b | c");
  CHECK(with_note("a | flex: old | ", "new") == "a | flex: new | ");
  CHECK(with_note("flex: old|billing=42", "new") == "flex: new|billing=42");
  CHECK(with_note("flex: old  || billing=42", "new") == "flex: new  || billing=42");
  CHECK(with_note("flex:  | x", "new") == "flex: new | x");
  CHECK(our_note("flex: | x").empty());
  CHECK(our_note("a | flex: old | b") == "old");
  CHECK(our_note("flex: old\nb") == "old");
  // Again and again.
  std::string comment = "flex: one | theirs";
  for (const char* text : {"two", "three | four", "five\nsix", "seven"}) {
    comment = with_note(comment, text);
    CHECK(with_note(comment, text) == comment);
  }
  CHECK(comment == "flex: seven | theirs");
}

TEST_CASE("with_note: words like ours in a user's text do not make it grow", "[core]") {
  const std::string text = "waiting; " + note_ignored({"run=x | flex: y: not a time"});
  const std::string once = with_note("site text", text);
  CHECK(with_note(once, text) == once);
  CHECK(with_note(once, "VMs end 2026-11-16T18:35") ==
        "site text | flex: VMs end 2026-11-16T18:35");
  CHECK(says_running(with_note(once, "VMs end 2026-11-16T18:35")));
  CHECK(says_running("flex: VMs end 2026-11-16T18:35"));
  CHECK_FALSE(says_running(once));
  CHECK_FALSE(says_running("site text"));
  CHECK_FALSE(says_running(""));
}

TEST_CASE("note_waiting: a used-up quota is named", "[core]") {
  const auto [message, words] = GENERATE(table<std::string, std::string>(
      {{"Quota 'NVIDIA_H100_GPUS' exceeded.  Limit: 8.0 in region us-central1.",
        "quota NVIDIA_H100_GPUS is used up (limit 8), ask for more or wait"},
       {"Quota 'CPUS' exceeded. Limit: 24.5",
        "quota CPUS is used up (limit 24.5), ask for more or wait"},
       {"Quota CPUS exceeded", "quota CPUS is used up, ask for more or wait"},
       {"Quota exceeded for quota metric 'compute.googleapis.com/gpus' and limit 'x'",
        "quota gpus is used up, ask for more or wait"},
       {"Quota exceeded", "QUOTA_EXCEEDED: Quota exceeded"},
       {"", "QUOTA_EXCEEDED: "}}));
  const std::string text = note_waiting({.vms = 1,
                                         .region = "r",
                                         .since = {},
                                         .attempt = 1,
                                         .now = {},
                                         .estimate = {},
                                         .reason_code = "QUOTA_EXCEEDED",
                                         .reason = message});
  CHECK_THAT(text, EndsWith("(attempt 1): " + words));
}

TEST_CASE("note_overrun: says which comes first, and what then", "[core]") {
  Overrun overrun{.ends = TimePoint{Seconds{1'800'000'000}},
                  .time_limit = TimePoint{Seconds{1'800'003'600}},
                  .is_requeued = true,
                  .limit_to_come = {}};
  const std::string ends = local_time(overrun.ends);
  CHECK(note_overrun(overrun) == "VMs end " + ends + ", before the job's time limit " +
                                     local_time(*overrun.time_limit) +
                                     ": it will be requeued then; checkpoint before");
  overrun.time_limit.reset();
  overrun.is_requeued = false;
  CHECK(note_overrun(overrun) ==
        "VMs end " + ends + ", and the job has no time limit: it ends then; checkpoint before");
}

TEST_CASE("says_overrun: in our part of the comment only", "[core]") {
  CHECK(says_overrun("flex: VMs end 11:00, before the job's time limit 12:00: it ends then"));
  CHECK(says_overrun("mine | flex: VMs end 11:00, and the job has no time limit: it ends then"));
  CHECK_FALSE(says_overrun("flex: VMs end 11:00"));
  CHECK_FALSE(
      says_overrun("VMs end 11:00, before the job's time limit 12:00 | flex: VMs end 11:00"));
  CHECK_FALSE(says_overrun(""));
}

TEST_CASE("warning_line: rounds up to minutes and is never negative", "[core]") {
  const Overrun overrun{.ends = TimePoint{Seconds{1'800'000'000}},
                        .time_limit = {},
                        .is_requeued = true,
                        .limit_to_come = {}};
  CHECK_THAT(warning_line(overrun, overrun.ends - Seconds{599}),
             ContainsSubstring(", in 10 minutes;"));
  CHECK_THAT(warning_line(overrun, overrun.ends - Seconds{9}), ContainsSubstring(", in 1 minute;"));
  CHECK_THAT(warning_line(overrun, overrun.ends + Seconds{9}),
             ContainsSubstring(", in 0 minutes;"));
}

TEST_CASE("our_note: our part of a comment, and nothing of others", "[core]") {
  // Of an older version, which quoted a user so.
  CHECK(our_note("flex: waiting | flex: for VMs") == "waiting | flex: for VMs");
  CHECK(our_note("billing=42 | flex: waiting") == "waiting");
  CHECK(our_note("billing=42").empty());
  CHECK(our_note("").empty());
}

TEST_CASE("with_remedy: says what to change in slurm.conf, for each of slurmctld's reasons",
          "[core]") {
  CHECK(with_remedy("Low RealMemory (reported:1 < 90.00% of configured:2)", "a-[0-1]") ==
        "Low RealMemory (reported:1 < 90.00% of configured:2); lower RealMemory on the NodeName "
        "line of a-[0-1] in slurm.conf, or take a bigger machine type");
  const auto says = [](std::string_view reason, std::string_view part) {
    return with_remedy(reason, "a-0").find(part) != std::string::npos;
  };
  CHECK(says("gres/gpu count reported lower than configured (0 < 8)", "; correct Gres on"));
  CHECK(says("Low socket*core*thread count, Low CPUs",
             "; lower Sockets, CoresPerSocket or ThreadsPerCore, lower CPUs on"));
  CHECK(says("Low TmpDisk", "; lower TmpDisk on"));
  CHECK(says("something new", "something new; write what slurmd -C prints there on"));
  CHECK(says("", "no reason given; "));
}

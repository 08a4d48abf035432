// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/job_note.h"

#include "lib/core/duration.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace flex {

namespace {

/// A comment is for people: the gist of a long message is in its beginning.
constexpr std::size_t kMostReason = 160;

/// Google's estimate is left out when it is over for so long.
constexpr Seconds kStaleEstimate = std::chrono::minutes{15};

/// How the word begins for a job whose VMs are there.
constexpr std::string_view kRunning = "VMs end ";
constexpr std::string_view kBeforeLimit = ", before the job's time limit ";
constexpr std::string_view kUnlimited = ", and the job has no time limit";

std::tm to_local(TimePoint time) {
  const std::time_t seconds = time.time_since_epoch().count();
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return local;
}

/// "14:02" on the same day, else with the date.
std::string clock_time(TimePoint time, TimePoint now) {
  const std::tm local = to_local(time);
  const std::tm today = to_local(now);
  const bool is_today = local.tm_yday == today.tm_yday && local.tm_year == today.tm_year;
  return is_today ? fmt::format("{:%H:%M}", local) : fmt::format("{:%Y-%m-%dT%H:%M}", local);
}

/// What happens to the job when its VMs end.
std::string_view fate(const Overrun& overrun) {
  return overrun.is_requeued ? "it will be requeued then" : "it ends then";
}

std::string_view words_of(TimeoutOutcome fate) {
  switch (fate) {
    case TimeoutOutcome::Requeued:
      return "back in the queue";
    case TimeoutOutcome::Held:
      return "held, 'scontrol release' it to try again";
    case TimeoutOutcome::Cancelled:
      return "cancelled, submit it again to try again";
    case TimeoutOutcome::Ended:
      return "ended, it may not be requeued; submit it again to try again";
  }
  return {};
}

/// Between our part and what others wrote before or behind it.
constexpr std::string_view kSeparator = " | ";

/// Our part of a comment.
struct OurPart {
  std::size_t begin = 0;
  std::size_t end = 0;  ///< the same: there is none
};

/// Where ours ends that begins at `begin`: at a bar, with the blanks before it, or at the end of
/// its line. What our texts quote has neither (plain_text), but for those of older versions: what
/// follows the separator and begins as ours does is ours, too.
std::size_t end_of_part(std::string_view comment, std::size_t begin) {
  const std::string next = fmt::format("{}{}", kSeparator, kNotePrefix);
  const std::size_t text = begin + kNotePrefix.size();
  std::size_t end = text;
  while (end < comment.size() && comment[end] != '|' && comment[end] != '\n')
    end += comment.substr(end).starts_with(next) ? next.size() : 1;
  while (end < comment.size() && end > text && comment[end - 1] == ' ') --end;
  return end;
}

/// The part that begins the comment, or that follows the first separator before one of ours.
OurPart find_our_part(std::string_view comment) {
  const std::string inner = fmt::format("{}{}", kSeparator, kNotePrefix);
  std::size_t begin = 0;
  if (!comment.starts_with(kNotePrefix)) {
    begin = comment.find(inner);
    if (begin == std::string_view::npos) return {};
    begin += kSeparator.size();
  }
  return {.begin = begin, .end = end_of_part(comment, begin)};
}

/// A text of ours in which nothing can be taken for the end of our part. It may quote a user or
/// Google.
std::string plain_text(std::string_view text) {
  std::string plain(text.substr(0, text.find_last_not_of(" \n") + 1));
  std::replace(plain.begin(), plain.end(), '\n', ' ');
  std::replace(plain.begin(), plain.end(), '|', '/');
  return plain;
}

/// Every request waits for capacity; anything else is worth a word.
bool is_worth_telling(std::string_view code) {
  return !code.empty() && code.find("RESOURCE_POOL_EXHAUSTED") == std::string_view::npos;
}

/// What is between `before` and the next of `ends`; empty: it is not there.
std::string_view text_between(std::string_view text,
                              std::string_view before,
                              std::string_view ends) {
  const std::size_t at = text.find(before);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + before.size());
  return text.substr(0, text.find_first_of(ends));
}

/// Google's "Quota 'X' exceeded.  Limit: 8.0 in region R." and its relatives, in our words. Empty
/// if it names no quota.
std::string quota_words(std::string_view message) {
  std::string_view name;
  for (const std::string_view before : {"uota '", "uota metric '", "Quota "}) {
    if (name.empty()) name = text_between(message, before, "' ");
  }
  if (name.empty() || name == "exceeded") return {};
  name.remove_prefix(name.rfind('/') + 1);  // of "compute.googleapis.com/X"; npos + 1 is 0
  std::string_view limit = text_between(message, "imit: ", " ");
  while (limit.ends_with('.') || limit.ends_with(',')) limit.remove_suffix(1);
  if (limit.ends_with(".0")) limit.remove_suffix(2);
  return fmt::format("quota {} is used up{}, ask for more or wait",
                     name,
                     limit.empty() ? std::string{} : fmt::format(" (limit {})", limit));
}

/// Why Google still does not serve a request.
std::string reason_words(std::string_view code, std::string_view message) {
  std::string words = code == "QUOTA_EXCEEDED" ? quota_words(message) : std::string{};
  return words.empty() ? fmt::format("{}: {}", code, shortened(message, kMostReason)) : words;
}

}  // namespace

std::string with_note(std::string_view existing, std::string_view text) {
  const std::string note = fmt::format("{}{}", kNotePrefix, plain_text(text));
  const OurPart ours = find_our_part(existing);
  if (ours.begin == ours.end)
    return existing.empty() ? note : fmt::format("{}{}{}", existing, kSeparator, note);
  return fmt::format("{}{}{}", existing.substr(0, ours.begin), note, existing.substr(ours.end));
}

std::string_view our_note(std::string_view comment) {
  const OurPart ours = find_our_part(comment);
  if (ours.begin == ours.end) return {};
  return comment.substr(ours.begin, ours.end - ours.begin).substr(kNotePrefix.size());
}

std::string note_capped(Seconds time_limit, Seconds run_duration) {
  return fmt::format(
      "time limit {} capped: VMs live at most {} from their start, save your work before that",
      format_slurm_time(time_limit),
      format_slurm_time(run_duration));
}

std::string note_unmet_wish(Seconds wish, Seconds run_duration) {
  return fmt::format("asked for VMs that live {}, but here they live {} from their start",
                     format_slurm_time(wish),
                     format_slurm_time(run_duration));
}

std::string note_refused(std::string_view why) {
  return fmt::format(
      "no VMs: {}. Held so that it does not loop; ask your admin, then 'scontrol release' it", why);
}

std::string note_resume_timeout(std::string_view nodes) {
  return fmt::format(
      "no VMs for {} within Slurm's ResumeTimeout; the request was cancelled and the job requeued",
      nodes);
}

std::string note_waiting(const WaitingNote& note) {
  std::string text = fmt::format("waiting for {} VM{} in {} since {} (attempt {})",
                                 note.vms,
                                 note.vms == 1 ? "" : "s",
                                 note.region,
                                 clock_time(note.since, note.now),
                                 note.attempt);
  if (note.estimate && *note.estimate + kStaleEstimate > note.now)
    text += fmt::format(", Google estimates {}", clock_time(*note.estimate, note.now));
  if (note.gives_up) text += fmt::format(", gives up at {}", clock_time(*note.gives_up, note.now));
  if (is_worth_telling(note.reason_code))
    text += (note.reason_code == "QUOTA_EXCEEDED" ? ": " : "; ") +
            reason_words(note.reason_code, note.reason);
  return text;
}

std::string note_running(TimePoint ends) {
  return fmt::format("{}{}", kRunning, local_time(ends));
}

bool says_running(std::string_view comment) {
  return our_note(comment).starts_with(kRunning);
}

std::string note_ignored(const std::vector<std::string>& problems) {
  return fmt::format("ignored: {}",
                     shortened(fmt::format("{}", fmt::join(problems, "; ")), kMostReason));
}

std::string note_overrun(const Overrun& overrun) {
  std::string limit{kUnlimited};
  if (overrun.time_limit)
    limit = fmt::format("{}{}", kBeforeLimit, local_time(*overrun.time_limit));
  else if (overrun.limit_to_come)
    limit = fmt::format("{}of {} is over", kBeforeLimit, format_slurm_time(*overrun.limit_to_come));
  return fmt::format(
      "{}{}{}: {}; checkpoint before", kRunning, local_time(overrun.ends), limit, fate(overrun));
}

bool says_overrun(std::string_view comment) {
  if (!says_running(comment)) return false;
  const std::string_view ours = our_note(comment);
  return ours.find(kBeforeLimit) != std::string_view::npos ||
         ours.find(kUnlimited) != std::string_view::npos;
}

std::string note_warned(const Overrun& overrun) {
  return fmt::format(
      "warned: VMs end {}, {}; checkpoint now", local_time(overrun.ends), fate(overrun));
}

std::string warning_line(const Overrun& overrun, TimePoint now) {
  const auto minutes =
      std::chrono::ceil<std::chrono::minutes>(std::max(overrun.ends - now, Seconds{0}));
  return fmt::format("{}the VMs of this job end at {}, in {} minute{}; {}: save your work now",
                     kNotePrefix,
                     local_time(overrun.ends),
                     minutes.count(),
                     minutes.count() == 1 ? "" : "s",
                     fate(overrun));
}

std::string note_longer(Seconds before, Seconds now) {
  return fmt::format(
      "a time limit has been raised, or a longer job is on the same nodes: VMs are asked for anew "
      "for {} instead of {}; the request keeps its place until then",
      format_slurm_time(now),
      format_slurm_time(before));
}

std::string note_lengthened(Seconds before, Seconds now) {
  return fmt::format(
      "VMs are asked for for {} instead of {}: a time limit was raised, or a longer job is on the "
      "same nodes",
      format_slurm_time(now),
      format_slurm_time(before));
}

std::string note_incomplete(std::size_t there,
                            std::size_t all,
                            const std::optional<Seconds>& limit,
                            bool is_requeued) {
  const std::string why =
      limit ? fmt::format("only {} of {} VMs came within incomplete_timeout {}",
                          there,
                          all,
                          format_slurm_time(*limit))
            : fmt::format("{} of {} VMs would end before the job's time limit", there, all);
  return fmt::format("{}: they are given back, {}all {} are asked for together",
                     why,
                     is_requeued ? "the job is requeued and " : "",
                     all);
}

std::string note_next_attempt(std::uint32_t failed, TimePoint next, std::string_view why) {
  return fmt::format("attempt {} failed: {}; the next one is at {}",
                     failed,
                     shortened(why, kMostReason),
                     local_time(next));
}

std::string note_refused_for_now(TimePoint next, std::string_view why) {
  return fmt::format(
      "not queued yet: {}; the next try is at {}", shortened(why, kMostReason), local_time(next));
}

std::string note_other_failed(std::string_view why, const std::optional<TimePoint>& next) {
  return fmt::format("another request for them failed: {}, {}",
                     shortened(why, kMostReason),
                     next ? "tried again at " + local_time(*next) : "not tried again");
}

std::string why_given_up(Seconds limit, bool is_own_limit) {
  return fmt::format("no VMs within {} {}",
                     is_own_limit ? "the job's max-wait" : "provision_timeout",
                     format_slurm_time(limit));
}

std::string note_provision_timeout(Seconds limit, bool is_own_limit, TimeoutOutcome fate) {
  return fmt::format("{}; {}", why_given_up(limit, is_own_limit), words_of(fate));
}

std::string note_not_eligible(std::string_view why, TimeoutOutcome fate) {
  return fmt::format("no VMs: {}; {}", why, words_of(fate));
}

std::string note_cancelled(std::string_view why, TimeoutOutcome fate) {
  return fmt::format("no VMs: {}; {}", why, words_of(fate));
}

std::string note_stopped(std::string_view nodeset, std::string_view why) {
  return fmt::format(
      "nodeset {} is stopped: {}; the job waits until your admin starts it again", nodeset, why);
}

std::string with_remedy(std::string_view reason, std::string_view nodes) {
  struct Remedy {
    std::string_view word;  ///< in slurmctld's reason
    std::string_view what;
  };

  // slurmctld 22.05 to 26.05: "Low RealMemory (reported:…)", "gres/gpu count reported lower than
  // configured (0 < 8)", "Low socket*core*thread count, Low CPUs", "Low TmpDisk".
  static constexpr Remedy kRemedies[] = {
      {"RealMemory", "lower RealMemory"},
      {"gres/", "correct Gres"},
      {"socket", "lower Sockets, CoresPerSocket or ThreadsPerCore"},
      {"CPU", "lower CPUs"},
      {"TmpDisk", "lower TmpDisk"}};
  std::string what;
  for (const Remedy& remedy : kRemedies) {
    if (reason.find(remedy.word) == std::string_view::npos) continue;
    what += fmt::format("{}{}", what.empty() ? "" : ", ", remedy.what);
  }
  // "slurmd -C" prints the line that fits.
  if (what.empty()) what = "write what slurmd -C prints there";
  return fmt::format(
      "{}; {} on the NodeName line of {} in slurm.conf, or take a bigger machine type",
      reason.empty() ? std::string_view("no reason given") : reason,
      what,
      nodes);
}

std::string note_boot_refused(std::string_view complaint, bool is_requeued) {
  return fmt::format("VMs came, but {}; {}",
                     complaint,
                     is_requeued ? "back in the queue" : "it may not be requeued");
}

std::string note_vm_gone(std::string_view nodes, std::string_view why, bool is_requeued) {
  return fmt::format(
      "lost {}: {}; {}", nodes, why, is_requeued ? "back in the queue" : "it may not be requeued");
}

std::string note_time_over(std::string_view nodes) {
  return fmt::format("lost {} after its time limit: the job is over", nodes);
}

std::string local_time(TimePoint time) {
  return fmt::format("{:%Y-%m-%dT%H:%M}", to_local(time));
}

std::string note_turn(const TurnNote& note) {
  const std::string place =
      note.before == 0
          ? std::string("it is the next one")
          : fmt::format("{} job{} before it", note.before, note.before == 1 ? " is" : "s are");
  return fmt::format("waiting for its turn: {}, {} (since {})",
                     shortened(note.why, kMostReason),
                     place,
                     clock_time(note.since, note.now));
}

}  // namespace flex

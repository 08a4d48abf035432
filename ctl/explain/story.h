// SPDX-License-Identifier: GPL-2.0-or-later
// The story of a job, a node or a request: from the history and from what Slurm and Compute Engine
// say now (pure).
#pragma once

#include "lib/config/config.h"
#include "lib/fleet/history.h"
#include "sweeper/memory.h"
#include "sweeper/snapshot.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

struct Subject {
  enum class Kind { Job, Node, Request };

  Kind kind = Kind::Job;
  std::string name{};   ///< "12", "12_3", "12+1", "a3u-7", "j12-0123456789"
  JobId job = 0;        ///< of a job
  std::string group{};  ///< of a request; empty: whatever its group, one in each lane of a race

  /// Of a request: it is this one, or one of several.
  [[nodiscard]] bool is_request(std::string_view of_group, std::string_view of_name) const {
    return of_name == name && (group.empty() || of_group.empty() || of_group == group);
  }

  /// As it was typed.
  [[nodiscard]] std::string text() const { return group.empty() ? name : group + "/" + name; }
};

/// What could be found out. What could not be is empty, and a note says so.
struct Facts {
  const Config& config;
  const Snapshot& shot;    ///< its `now` is the moment of the story
  const Memory& memory;    ///< the sweeper's
  TimePoint last_sweep{};  ///< its last complete round; 0: not known
  bool has_slurm = true;
  bool has_cloud = true;
  std::vector<std::string> notes{};
};

/// Something that happened, in a sentence.
struct StoryLine {
  TimePoint when{};
  std::string who{};  ///< "flex-resume", "Google", "Slurm", …
  std::string text{};
  Event event{};  ///< what it was made from; without a `what`: seen live
};

struct Story {
  Subject subject{};
  std::string title{};
  std::vector<StoryLine> lines{};
  std::size_t left_out = 0;          ///< older lines than these
  std::vector<std::string> notes{};  ///< what the story lacks, and why
  std::string now{};                 ///< how it stands, and what comes next
  bool is_known = false;             ///< false: nobody knows the subject
};

/// What was typed on the command line: a number is a job, 12_3 a task of an array, 12+1 a part of a
/// heterogeneous job, GROUP/NAME a request, everything else a node or a request, by whoever knows
/// one of that name. NotFound says what to do instead.
[[nodiscard]] Result<Subject> find_subject(std::string_view text,
                                           const std::vector<Event>& events,
                                           const Facts& facts);

/// The story, oldest first; at most the last `most` lines.
[[nodiscard]] Story tell_story(const Subject& subject,
                               const std::vector<Event>& events,
                               const Facts& facts,
                               std::size_t most = 200);

// ---- its parts ----

/// A request's name; with its group in front where others are called the same.
[[nodiscard]] std::string request_label(const Facts& facts,
                                        const std::string& group,
                                        const std::string& name);

/// The events that concern the subject, in the order of their time.
[[nodiscard]] std::vector<Event> select_events(const Subject& subject,
                                               const std::vector<Event>& events,
                                               const Facts& facts);

/// Who did it, and what it was.
[[nodiscard]] StoryLine line_of(const Event& event, TimePoint now);

/// One or a few sentences. `events`: those of the subject.
[[nodiscard]] std::string how_it_stands(const Subject& subject,
                                        const std::vector<Event>& events,
                                        const Facts& facts,
                                        const Picture& picture);

}  // namespace flex

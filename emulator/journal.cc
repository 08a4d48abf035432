// SPDX-License-Identifier: GPL-2.0-or-later
// The journal of API calls.
#include "emulator/journal.h"

namespace flex::emulator {

namespace {

constexpr std::size_t kMaxEntries = 50000;
constexpr std::size_t kMaxBytes = 64U << 20U;

std::size_t size_of(const JournalEntry& entry) {
  return entry.body.size() + entry.path.size() + 256;
}

Json to_json(const JournalEntry& entry) {
  Json body = Json::parse(entry.body, nullptr, false);
  if (body.is_discarded()) body = entry.body.empty() ? Json() : Json(entry.body);
  return Json{{"seq", entry.seq},
              {"method", entry.method},
              {"verb", entry.verb},
              {"path", entry.path},
              {"query", entry.query},
              {"body", std::move(body)},
              {"status", entry.status},
              {"started", entry.started},
              {"ended", entry.ended},
              {"fault", entry.fault}};
}

}  // namespace

void Journal::add(JournalEntry entry) {
  const std::lock_guard lock(mutex_);
  entry.seq = ++next_;
  ++counters_[entry.method][entry.status];
  bytes_ += size_of(entry);
  entries_.push_back(std::move(entry));
  while (entries_.size() > kMaxEntries || (bytes_ > kMaxBytes && entries_.size() > 1)) {
    bytes_ -= size_of(entries_.front());
    entries_.pop_front();
  }
}

Json Journal::since(std::uint64_t since) const {
  const std::lock_guard lock(mutex_);
  Json list = Json::array();
  for (const JournalEntry& entry : entries_)
    if (entry.seq > since) list.push_back(to_json(entry));
  return list;
}

Json Journal::counters() const {
  const std::lock_guard lock(mutex_);
  Json json = Json::object();
  for (const auto& [method, by_status] : counters_)
    for (const auto& [status, count] : by_status) json[method][std::to_string(status)] = count;
  return json;
}

void Journal::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  counters_.clear();
  bytes_ = 0;
}

}  // namespace flex::emulator

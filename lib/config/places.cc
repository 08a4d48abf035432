// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/places.h"

#include <functional>

namespace flex {

namespace {

constexpr std::size_t kFirstSlots = 64;
constexpr unsigned kHalf = 32;

/// Where this thread has found the last node, in whichever table: a guess that is always checked.
thread_local std::size_t last_entry = 0;

}  // namespace

const NodePlace* NodePlaces::find(const NodeName& node) const {
  // The nodes of a job, a request or a list come one after the other, up or down.
  const std::size_t last = last_entry;
  for (const std::size_t near : {last + 1, last, last - 1}) {
    if (near >= entries_.size() || !(entries_[near].node == node)) continue;
    last_entry = near;
    return &entries_[near].place;
  }
  if (slots_.empty()) return nullptr;
  const Slot& slot = slot_of(node);
  if (slot.entry == 0) return nullptr;
  last_entry = slot.entry - 1;
  return &entries_[last_entry].place;
}

const NodePlaces::Slot& NodePlaces::slot_of(const NodeName& node) const {
  const std::size_t hash = std::hash<NodeName>{}(node);
  const auto tag = static_cast<std::uint32_t>(hash >> kHalf);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.entry == 0) return slot;
    if (slot.tag == tag && entries_[slot.entry - 1].node == node) return slot;
  }
}

std::pair<NodePlace*, bool> NodePlaces::try_emplace(const NodeName& node, NodePlace place) {
  if (2 * (entries_.size() + 1) > slots_.size()) grow();
  Slot& slot = const_cast<Slot&>(slot_of(node));  // NOLINT(*-const-cast): slots_ is not const here
  if (slot.entry != 0) return {&entries_[slot.entry - 1].place, false};
  entries_.push_back({.node = node, .place = place});
  slot = {.tag = static_cast<std::uint32_t>(std::hash<NodeName>{}(node) >> kHalf),
          .entry = static_cast<std::uint32_t>(entries_.size())};
  return {&entries_.back().place, true};
}

void NodePlaces::grow() {
  const std::size_t size = slots_.empty() ? kFirstSlots : 2 * slots_.size();
  slots_.assign(size, {});
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::size_t hash = std::hash<NodeName>{}(entries_[i].node);
    std::size_t at = hash & (size - 1);
    while (slots_[at].entry != 0) at = (at + 1) & (size - 1);
    slots_[at] = {.tag = static_cast<std::uint32_t>(hash >> kHalf),
                  .entry = static_cast<std::uint32_t>(i + 1)};
  }
}

}  // namespace flex

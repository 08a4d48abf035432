// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/text.h"

#include <array>
#include <cstdint>

namespace flex {

namespace {

/// A character of UTF-8 at the beginning of a text.
struct Character {
  std::size_t size = 1;
  bool is_valid = false;
  std::uint32_t code = 0;
};

/// How characters begin that take as many bytes as their place says, and the first code of each.
struct Form {
  std::uint32_t mask = 0;
  std::uint32_t mark = 0;
  std::uint32_t least = 0;
};

constexpr std::array<Form, 5> kForms{{{},
                                      {0x80U, 0x00U, 0U},
                                      {0xE0U, 0xC0U, 0x80U},
                                      {0xF0U, 0xE0U, 0x800U},
                                      {0xF8U, 0xF0U, 0x10000U}}};

std::uint32_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

Character first_of(std::string_view text) {
  for (std::size_t size = 1; size < kForms.size() && size <= text.size(); ++size) {
    const Form& form = kForms.at(size);
    if ((byte_at(text, 0) & form.mask) != form.mark) continue;
    std::uint32_t code = byte_at(text, 0) & ~form.mask;
    for (std::size_t i = 1; i < size; ++i) {
      if ((byte_at(text, i) & 0xC0U) != 0x80U) return {};
      code = code << 6U | (byte_at(text, i) & 0x3FU);
    }
    const bool is_surrogate = code >= 0xD800U && code <= 0xDFFFU;
    if (code < form.least || code > 0x10FFFFU || is_surrogate) return {};
    return {.size = size, .is_valid = true, .code = code};
  }
  return {};
}

bool is_control(std::uint32_t code) {
  const bool is_c0_or_c1 = code < 0x20U || (code >= 0x7FU && code <= 0x9FU);
  const bool is_break_or_embedding = code >= 0x2028U && code <= 0x202EU;
  const bool is_isolate = code >= 0x2066U && code <= 0x2069U;
  return is_c0_or_c1 || is_break_or_embedding || is_isolate;
}

}  // namespace

std::string printable(std::string_view text, char instead) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_of(text);
    if (next.is_valid && !is_control(next.code))
      clean.append(text.substr(0, next.size));
    else
      clean += instead;
    text.remove_prefix(next.size);
  }
  return clean;
}

std::string_view beginning_of(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  std::size_t cut = limit;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
  return text.substr(0, cut);
}

std::string shortened(std::string_view text, std::size_t limit) {
  const std::string_view beginning = beginning_of(text, limit);
  return std::string(beginning) + (beginning.size() < text.size() ? "…" : "");
}

}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/text.h"

namespace flex {

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

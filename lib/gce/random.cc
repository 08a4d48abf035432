// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/random.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <sys/random.h>

namespace flex {
namespace {

template <std::size_t N>
std::array<std::uint8_t, N> random_bytes() {
  static_assert(N <= 256, "getrandom() gives up to 256 bytes whole");
  std::array<std::uint8_t, N> bytes{};
  if (getrandom(bytes.data(), N, 0) != static_cast<ssize_t>(N)) {
    // No getrandom() (a seccomp filter): the clock still differs from call to call.
    static std::uint64_t count = 0;
    std::uint64_t mix =
        static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
        (++count << 40U);
    for (auto& byte : bytes) {
      mix = mix * 6364136223846793005U + 1442695040888963407U;
      byte = static_cast<std::uint8_t>(mix >> 56U);
    }
  }
  return bytes;
}

}  // namespace

std::string random_uuid() {
  static constexpr std::string_view kHex = "0123456789abcdef";
  auto bytes = random_bytes<16>();
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0FU) | 0x40U);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3FU) | 0x80U);
  std::string out;
  out.reserve(36);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += kHex[bytes[i] >> 4U];
    out += kHex[bytes[i] & 15U];
  }
  return out;
}

double random_unit() {
  const auto bytes = random_bytes<8>();
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), sizeof bits);
  return static_cast<double>(bits >> 11U) * 0x1.0p-53;
}

}  // namespace flex

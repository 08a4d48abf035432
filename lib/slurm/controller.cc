// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/controller.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace flex::slurm {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }

  void operator()(ifaddrs* list) const noexcept { freeifaddrs(list); }
};

/// Every address as IPv6, so that there is one way to compare them.
using Address = std::array<unsigned char, sizeof(in6_addr)>;
constexpr std::size_t kV4Offset = sizeof(in6_addr) - sizeof(in_addr);

std::optional<Address> to_address(const sockaddr* socket) {
  if (socket == nullptr) return std::nullopt;
  Address address{};
  if (socket->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, socket, sizeof(v4));
    address[kV4Offset - 2] = address[kV4Offset - 1] = 0xff;
    std::memcpy(address.data() + kV4Offset, &v4.sin_addr, sizeof(v4.sin_addr));
    return address;
  }
  if (socket->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6{};
  std::memcpy(&v6, socket, sizeof(v6));
  std::memcpy(address.data(), &v6.sin6_addr, sizeof(v6.sin6_addr));
  return address;
}

/// All of 127.0.0.0/8, of which an interface lists one only: Debian gives a host's own name
/// 127.0.1.1.
bool is_loopback_v4(const Address& address) {
  return address[kV4Offset] == 127 && address[kV4Offset - 1] == 0xff &&
         address[kV4Offset - 2] == 0xff;
}

std::vector<Address> find_own_addresses() {
  ifaddrs* raw = nullptr;
  std::vector<Address> own;
  if (getifaddrs(&raw) != 0) return own;
  const std::unique_ptr<ifaddrs, FreeAddresses> list(raw);
  for (const ifaddrs* each = raw; each != nullptr; each = each->ifa_next) {
    if (const auto address = to_address(each->ifa_addr)) own.push_back(*address);
  }
  return own;
}

bool has_own_address(const std::string& name) {
  addrinfo* raw = nullptr;
  if (name.empty() || getaddrinfo(name.c_str(), nullptr, nullptr, &raw) != 0) return false;
  const std::unique_ptr<addrinfo, FreeAddresses> list(raw);
  const auto own = find_own_addresses();
  for (const addrinfo* each = raw; each != nullptr; each = each->ai_next) {
    const auto address = to_address(each->ai_addr);
    if (!address) continue;
    if (is_loopback_v4(*address)) return true;
    if (std::find(own.begin(), own.end(), *address) != own.end()) return true;
  }
  return false;
}

}  // namespace

bool is_same_host(std::string_view one, std::string_view other) {
  if (one.size() > other.size()) std::swap(one, other);
  if (one.empty() || !other.starts_with(one)) return false;
  if (one.size() == other.size()) return true;
  return one.find('.') == std::string_view::npos && other[one.size()] == '.';
}

bool is_this_host(const ControllerHost& host) {
  std::array<char, HOST_NAME_MAX + 1> own{};
  if (gethostname(own.data(), own.size() - 1) == 0 && is_same_host(host.name, own.data()))
    return true;
  return is_same_host(host.name, "localhost") || has_own_address(host.address);
}

}  // namespace flex::slurm

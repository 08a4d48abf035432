// SPDX-License-Identifier: GPL-2.0-or-later
// libFuzzer: every parser of what comes from the network or from a key file.
#include "lib/gce/credentials.h"
#include "lib/gce/token.h"
#include "lib/gce/urls.h"
#include "lib/gce/wire.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flex;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(parse_group(text));
  static_cast<void>(parse_group_page(text));
  static_cast<void>(parse_request_page(text, {"g"}));
  static_cast<void>(parse_instance_page(text));
  static_cast<void>(parse_loose_instance_page(text));
  static_cast<void>(parse_operation_page(text));
  static_cast<void>(parse_policy_page(text));
  if (const auto operation = parse_operation(text); operation && operation->error)
    static_cast<void>(to_error(*operation->error));
  static_cast<void>(to_error(parse_complaint(403, text)));
  static_cast<void>(parse_token_reply(text));
  static_cast<void>(parse_credentials(text));
  static_cast<void>(parse_origin(text));
  static_cast<void>(parse_endpoint(text));
  return 0;
}

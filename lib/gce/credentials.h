// SPDX-License-Identifier: GPL-2.0-or-later
// Whose access tokens we use: Google's "application default credentials".
#pragma once

#include "lib/core/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <variant>

namespace flex {

/// Text that is wiped when it goes. It is never printed.
class Secret {
 public:
  Secret() = default;

  explicit Secret(std::string text) : text_(std::move(text)) {}

  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  Secret(Secret&&) noexcept = default;
  Secret& operator=(Secret&&) noexcept = default;
  ~Secret();

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_{};
};

/// The service account of the VM we are on.
struct MetadataServer {};

/// A key file of type service_account.
struct ServiceAccount {
  std::string email{};
  std::string key_id{};
  Secret private_key{};  ///< PEM
  std::string token_url{};
  std::string project{};
};

/// A key file of type authorized_user (`gcloud auth application-default login`).
struct AuthorizedUser {
  std::string client_id{};
  Secret client_secret{};
  Secret refresh_token{};
  std::string token_url{};
};

using Credentials = std::variant<MetadataServer, ServiceAccount, AuthorizedUser>;

/// The text of a key file. Invalid: anything missing, another type, a token_uri that is neither
/// https nor loopback. No error quotes what is in the file.
[[nodiscard]] Result<Credentials> parse_credentials(std::string_view text);

/// `auto` ($GOOGLE_APPLICATION_CREDENTIALS, then gcloud's file, then the metadata server),
/// `metadata`, or a path. Invalid: a file that cannot be read, that is not one, or that others than
/// root, we and (for root) SlurmUser may write.
[[nodiscard]] Result<Credentials> load_credentials(const std::string& setting,
                                                   const std::optional<uid_t>& slurm_user = {});

/// Host or host:port of the metadata server: $GCE_METADATA_HOST, else the well-known address (a
/// name would need a DNS query first).
[[nodiscard]] std::string metadata_host();

}  // namespace flex

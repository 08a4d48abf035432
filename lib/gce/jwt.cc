// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/jwt.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstddef>
#include <memory>

namespace flex {
namespace {

constexpr std::string_view kScope = "https://www.googleapis.com/auth/compute";

struct FreeBio {
  void operator()(BIO* bio) const noexcept { BIO_free(bio); }
};

struct FreeKey {
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};

struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};

/// No key of ours has a passphrase, and nobody is there to be asked for one.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

Error bad_key(std::string_view why) {
  // OpenSSL's own words may quote the key: they are left out.
  return {ErrorKind::Invalid,
          fmt::format("the service account's private key {}", why),
          "BAD_CREDENTIALS"};
}

Result<std::string> sign(const Secret& pem, std::string_view text) {
  const std::unique_ptr<BIO, FreeBio> bio(
      BIO_new_mem_buf(pem.text().data(), static_cast<int>(pem.text().size())));
  const std::unique_ptr<EVP_PKEY, FreeKey> key(
      bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr) : nullptr);
  if (!key || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_RSA) return bad_key("is no RSA key");
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> context(EVP_MD_CTX_new());
  std::size_t length = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  if (!context ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &length, bytes, text.size()) != 1)
    return bad_key("cannot sign");
  std::string signature(length, '\0');
  if (EVP_DigestSign(context.get(),
                     reinterpret_cast<unsigned char*>(signature.data()),
                     &length,
                     bytes,
                     text.size()) != 1)
    return bad_key("cannot sign");
  signature.resize(length);
  return signature;
}

std::string dump(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string base64url(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string out;
  out.reserve(bytes.size() * 4 / 3 + 4);
  unsigned buffer = 0;
  unsigned bits = 0;
  for (const char c : bytes) {
    buffer = (buffer << 8U) | static_cast<unsigned char>(c);
    bits += 8;
    while (bits >= 6) {
      bits -= 6;
      out += kDigits[(buffer >> bits) & 63U];
    }
  }
  if (bits > 0) out += kDigits[(buffer << (6 - bits)) & 63U];
  return out;
}

Result<std::string> make_jwt(const ServiceAccount& account, TimePoint now) {
  nlohmann::json header = {{"alg", "RS256"}, {"typ", "JWT"}};
  if (!account.key_id.empty()) header["kid"] = account.key_id;
  const auto issued = now.time_since_epoch().count();
  const nlohmann::json claims = {{"iss", account.email},
                                 {"scope", kScope},
                                 {"aud", account.token_url},
                                 {"iat", issued},
                                 {"exp", issued + 3600}};
  std::string text = base64url(dump(header)) + "." + base64url(dump(claims));
  auto signature = sign(account.private_key, text);
  if (!signature) return signature;
  return text + "." + base64url(*signature);
}

}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/curl_transfer.h"

#include "lib/gce/urls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <new>

namespace flex {
namespace {

constexpr std::size_t kMaxReply = std::size_t{64} * 1024 * 1024;

/// libcurl's write callback; anything but `size * count` ends the transfer.
std::size_t on_data(char* data, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::size_t length = size * count;
  if (transfer.body.size() + length > kMaxReply) {
    transfer.is_too_large = true;
    return 0;
  }
  try {
    transfer.body.append(data, length);
  } catch (const std::bad_alloc&) {
    transfer.is_too_large = true;
    return 0;
  }
  return length;
}

bool is_plain_host(const std::string& host, const CurlSettings& settings) {
  return is_loopback(host) ||
         std::find(settings.plain_http_hosts.begin(), settings.plain_http_hosts.end(), host) !=
             settings.plain_http_hosts.end();
}

template <class T>
void set(const Transfer& transfer, CURLoption option, T value) {
  curl().easy_setopt(transfer.handle.get(), option, value);
}

void set_headers(Transfer& transfer) {
  const HttpRequest& request = transfer.request;
  transfer.headers.reset();
  for (const std::string& header : request.headers) append(transfer.headers, header);
  if (!request.bearer.empty()) append(transfer.headers, "Authorization: Bearer " + request.bearer);
  // libcurl would call an empty POST a form.
  if (request.body.empty()) append(transfer.headers, "Content-Type:");
  // "Expect: 100-continue" would cost a round trip with large bodies.
  append(transfer.headers, "Expect:");
  set(transfer, CURLOPT_HTTPHEADER, transfer.headers.get());
}

void set_method(Transfer& transfer) {
  const HttpRequest& request = transfer.request;
  if (request.method == "GET") return set(transfer, CURLOPT_HTTPGET, 1L);
  if (request.method == "POST" || !request.body.empty()) {
    set(transfer, CURLOPT_POST, 1L);
    set(transfer, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(transfer, CURLOPT_POSTFIELDS, request.body.c_str());
  }
  if (request.method != "POST") set(transfer, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

ErrorKind kind_of(CURLcode code) {
  switch (static_cast<int>(code)) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return ErrorKind::Invalid;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
      return ErrorKind::Denied;
    case CURLE_OUT_OF_MEMORY:
    case CURLE_FAILED_INIT:
    case CURLE_NOT_BUILT_IN:
    case CURLE_BAD_FUNCTION_ARGUMENT:
    case CURLE_UNKNOWN_OPTION:
      return ErrorKind::Internal;
    default:
      return ErrorKind::Retry;
  }
}

/// Where it was going, without the query: that may name things, and it is long.
std::string address(const std::string& url) {
  const auto origin = parse_origin(url);
  if (!origin) return "?";
  return origin->port.empty() ? origin->host : fmt::format("{}:{}", origin->host, origin->port);
}

}  // namespace

Result<Done> check_url(const std::string& url, const CurlSettings& settings) {
  const auto origin = parse_origin(url);
  if (!origin) return origin.error();
  if (origin->scheme == "http" && !is_plain_host(origin->host, settings))
    return Error{ErrorKind::Invalid,
                 fmt::format("plain http goes to loopback only, not to '{}'", origin->host),
                 "PLAIN_HTTP"};
  return Done{};
}

void prepare(Transfer& transfer, const CurlSettings& settings, std::chrono::milliseconds left) {
  const HttpRequest& request = transfer.request;
  const auto origin = parse_origin(request.url);
  const bool is_https = origin && origin->scheme == "https";
  const auto timeout = std::max(std::min(request.timeout, left), std::chrono::milliseconds{1});

  curl().easy_reset(transfer.handle.get());
  set(transfer, CURLOPT_URL, request.url.c_str());
  set(transfer, CURLOPT_WRITEFUNCTION, &on_data);
  set(transfer, CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  set(transfer, CURLOPT_PROTOCOLS_STR, is_https ? "https" : "http");
  set(transfer, CURLOPT_FOLLOWLOCATION, 0L);
  set(transfer, CURLOPT_NOSIGNAL, 1L);
  set(transfer, CURLOPT_TCP_NODELAY, 1L);
  // Google answers compressed only to agents that have "gzip" in their name as well.
  set(transfer, CURLOPT_ACCEPT_ENCODING, "gzip");
  set(transfer, CURLOPT_USERAGENT, "slurm-flex-start/" FLEX_VERSION " (gzip)");
  set(transfer, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
  set(transfer,
      CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(std::min(timeout, settings.connect_timeout).count()));
  if (is_https) {
    set(transfer, CURLOPT_SSL_VERIFYPEER, 1L);
    set(transfer, CURLOPT_SSL_VERIFYHOST, 2L);
    set(transfer, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    set(transfer, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    // Rather a stream on a connection that is being made than sixteen handshakes.
    set(transfer, CURLOPT_PIPEWAIT, 1L);
  } else {
    set(transfer, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  }
  if (!origin || is_plain_host(origin->host, settings)) set(transfer, CURLOPT_PROXY, "");
  set_headers(transfer);
  set_method(transfer);
}

Result<HttpResponse> finish(Transfer& transfer, CURLcode code) {
  if (transfer.is_too_large)
    return Error{ErrorKind::Internal,
                 fmt::format("{}: the reply is larger than {} MiB",
                             address(transfer.request.url),
                             kMaxReply / 1024 / 1024),
                 "REPLY_TOO_LARGE"};
  if (code != CURLE_OK)
    return Error{kind_of(code),
                 fmt::format("{}: {}", address(transfer.request.url), curl().easy_strerror(code)),
                 "HTTP_FAILED"};
  CURL* handle = transfer.handle.get();
  HttpResponse response{.body = std::move(transfer.body)};
  long status = 0;
  curl().easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  response.status = static_cast<int>(status);
  const char* content_type = nullptr;
  curl().easy_getinfo(handle, CURLINFO_CONTENT_TYPE, &content_type);
  if (content_type != nullptr) response.content_type = content_type;
  curl_off_t wait = 0;
  curl().easy_getinfo(handle, CURLINFO_RETRY_AFTER, &wait);
  // Bounded before it is multiplied: a server may send any number.
  if (wait > 0) response.retry_after = std::chrono::seconds{std::min<curl_off_t>(wait, 86400)};
  curl_header* flavor = nullptr;
  if (curl().easy_header(handle, "Metadata-Flavor", 0, CURLH_HEADER, -1, &flavor) == CURLHE_OK)
    response.metadata_flavor = flavor->value;
  curl_header* date = nullptr;
  if (curl().easy_header(handle, "Date", 0, CURLH_HEADER, -1, &date) == CURLHE_OK) {
    const time_t seconds = curl().getdate(date->value, nullptr);
    if (seconds > 0) response.date = std::chrono::sys_seconds{std::chrono::seconds{seconds}};
  }
  return response;
}

}  // namespace flex

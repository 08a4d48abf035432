// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/curl_library.h"

#include "lib/gce/curl_http.h"

#include <fmt/format.h>

#include <dlfcn.h>
#include <future>
#include <string>
#include <system_error>

namespace flex {
namespace {

/// The name that libcurl has had since 2006, in every distribution.
constexpr const char* kLibrary = "libcurl.so.4";

Error failure(const std::string& why) {
  return {ErrorKind::Internal, fmt::format("install libcurl: {}", why), "HTTP_FAILED"};
}

/// False if the library has no such function.
template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Result<CurlLibrary> load() {
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return failure(::dlerror());
  CurlLibrary found;
  const bool is_complete = find(library, "curl_global_init", found.global_init) &&
                           find(library, "curl_getdate", found.getdate) &&
                           find(library, "curl_easy_init", found.easy_init) &&
                           find(library, "curl_easy_cleanup", found.easy_cleanup) &&
                           find(library, "curl_easy_reset", found.easy_reset) &&
                           find(library, "curl_easy_setopt", found.easy_setopt) &&
                           find(library, "curl_easy_getinfo", found.easy_getinfo) &&
                           find(library, "curl_easy_header", found.easy_header) &&
                           find(library, "curl_easy_strerror", found.easy_strerror) &&
                           find(library, "curl_multi_init", found.multi_init) &&
                           find(library, "curl_multi_cleanup", found.multi_cleanup) &&
                           find(library, "curl_multi_setopt", found.multi_setopt) &&
                           find(library, "curl_multi_add_handle", found.multi_add_handle) &&
                           find(library, "curl_multi_remove_handle", found.multi_remove_handle) &&
                           find(library, "curl_multi_perform", found.multi_perform) &&
                           find(library, "curl_multi_info_read", found.multi_info_read) &&
                           find(library, "curl_multi_poll", found.multi_poll) &&
                           find(library, "curl_slist_append", found.slist_append) &&
                           find(library, "curl_slist_free_all", found.slist_free_all);
  if (!is_complete) return failure(::dlerror());
  return found;
}

/// Not by the thread: OpenSSL, which libcurl starts here, has handlers for the end of a thread and
/// for that of the process, which may come at the same time when a program gives up early.
Result<CurlLibrary> start(const Result<CurlLibrary>& loaded) {
  // No Winsock, no Amiga; TLS is set up by OpenSSL itself.
  if (loaded && loaded->global_init(CURL_GLOBAL_NOTHING) != CURLE_OK)
    return failure("it does not start");
  return loaded;
}

const std::shared_future<Result<CurlLibrary>>& coming() {
  static const std::shared_future<Result<CurlLibrary>> future = [] {
    try {
      return std::async(std::launch::async, load).share();
    } catch (const std::system_error&) {  // no thread is to be had
      return std::async(std::launch::deferred, load).share();
    }
  }();
  return future;
}

}  // namespace

void start_loading_curl() {
  static_cast<void>(coming());
}

const Result<CurlLibrary>& load_curl() {
  static const Result<CurlLibrary> started = start(coming().get());
  return started;
}

const CurlLibrary& curl() {
  static const CurlLibrary& library = *load_curl();
  return library;
}

}  // namespace flex

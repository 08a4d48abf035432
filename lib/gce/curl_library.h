// SPDX-License-Identifier: GPL-2.0-or-later
// libcurl's functions, loaded when they are needed and not with the program: with all that it links
// libcurl takes longer to load than everything else that comes before the first call, and it can be
// loaded beside that.
#pragma once

#include "lib/core/result.h"

#include <curl/curl.h>

namespace flex {

/// Each as in libcurl's manual, without the "curl_".
struct CurlLibrary {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_getdate) getdate = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_reset) easy_reset = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_header) easy_header = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_multi_init) multi_init = nullptr;
  decltype(&::curl_multi_cleanup) multi_cleanup = nullptr;
  decltype(&::curl_multi_setopt) multi_setopt = nullptr;
  decltype(&::curl_multi_add_handle) multi_add_handle = nullptr;
  decltype(&::curl_multi_remove_handle) multi_remove_handle = nullptr;
  decltype(&::curl_multi_perform) multi_perform = nullptr;
  decltype(&::curl_multi_info_read) multi_info_read = nullptr;
  decltype(&::curl_multi_poll) multi_poll = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
};

/// Loads libcurl and starts it, or waits until that is done; once for the process and never undone.
/// Internal: there is no libcurl, or it does not start.
[[nodiscard]] const Result<CurlLibrary>& load_curl();

/// Only after load_curl() has succeeded.
[[nodiscard]] const CurlLibrary& curl();

}  // namespace flex

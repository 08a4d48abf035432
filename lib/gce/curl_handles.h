// SPDX-License-Identifier: GPL-2.0-or-later
// libcurl's handles, owned.
#pragma once

#include "lib/gce/curl_library.h"

#include <memory>
#include <string>

namespace flex {

struct FreeCurl {
  void operator()(CURL* handle) const noexcept { curl().easy_cleanup(handle); }
};

struct FreeCurlMulti {
  void operator()(CURLM* handle) const noexcept { curl().multi_cleanup(handle); }
};

struct FreeCurlList {
  void operator()(curl_slist* list) const noexcept { curl().slist_free_all(list); }
};

using CurlPtr = std::unique_ptr<CURL, FreeCurl>;
using CurlMultiPtr = std::unique_ptr<CURLM, FreeCurlMulti>;
using CurlListPtr = std::unique_ptr<curl_slist, FreeCurlList>;

/// Adds to the list, which stays as it was if there is no memory.
inline void append(CurlListPtr& list, const std::string& line) {
  if (curl_slist* longer = curl().slist_append(list.get(), line.c_str())) {
    static_cast<void>(list.release());
    list.reset(longer);
  }
}

}  // namespace flex

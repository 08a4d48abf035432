// SPDX-License-Identifier: GPL-2.0-or-later
// Lists that come in pages.
#pragma once

#include "lib/gce/caller.h"
#include "lib/gce/cloud.h"
#include "lib/gce/urls.h"
#include "lib/gce/wire.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flex {

/// All pages of a list, one after the other, or an error.
template <class T>
struct Listing {
  std::string_view name = "other";  ///< of the method, as in Call
  std::string method = "GET";
  std::string path{};
  QueryParams query{};
  std::string doing{};
  std::function<Result<Page<T>>(std::string_view)> parse{};
  Then<std::vector<T>> then{};
  std::vector<T> items{};
};

template <class T>
void fetch_page(Caller& caller, std::shared_ptr<Listing<T>> list, const std::string& token) {
  QueryParams query = list->query;
  query.emplace_back("pageToken", token);
  Call call{.name = list->name,
            .method = list->method,
            .path = with_query(list->path, query),
            .doing = list->doing};
  caller.call(std::move(call), [&caller, list, token](const Result<std::string>& reply) {
    if (!reply) return list->then(reply.error());
    auto page = list->parse(*reply);
    if (!page) return list->then(std::move(page.error()).in(list->doing));
    if (list->items.empty())
      list->items = std::move(page->items);
    else
      for (T& item : page->items) list->items.push_back(std::move(item));
    if (page->next.empty()) return list->then(std::move(list->items));
    if (page->next == token)
      return list->then(
          Error{ErrorKind::Internal, list->doing + ": the same page again", "BAD_REPLY"});
    fetch_page(caller, list, page->next);
  });
}

template <class T>
void fetch_all(Caller& caller, Listing<T> list) {
  fetch_page(caller, std::make_shared<Listing<T>>(std::move(list)), {});
}

}  // namespace flex

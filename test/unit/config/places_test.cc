// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/places.h"

#include "test/support/catch.h"

#include <string>

using namespace flex;

TEST_CASE("places: as many nodes as there are, each found where it was put", "[config]") {
  constexpr std::size_t kMany = 5000;
  NodePlaces places;
  CHECK(places.find({"n0"}) == nullptr);
  for (std::size_t i = 0; i < kMany; ++i) {
    const auto [place, is_new] =
        places.try_emplace({"n" + std::to_string(i)}, {.nodeset = i % 7, .index = i});
    REQUIRE(is_new);
    REQUIRE(place->index == i);
  }
  CHECK(places.size() == kMany);
  for (std::size_t i = 0; i < kMany; ++i) {
    const NodePlace* const place = places.find({"n" + std::to_string(i)});
    REQUIRE(place != nullptr);
    REQUIRE(place->index == i);
    REQUIRE(place->nodeset == i % 7);
  }
  CHECK(places.find({"n5000"}) == nullptr);
  CHECK(places.find({""}) == nullptr);
}

TEST_CASE("places: the first stays, and can be changed", "[config]") {
  NodePlaces places;
  places[{"a"}] = {.nodeset = 1, .index = 2};
  const auto [place, is_new] = places.try_emplace({"a"}, {.nodeset = 3, .index = 4});
  CHECK_FALSE(is_new);
  CHECK(place->nodeset == 1);
  places[{"a"}].is_static = true;
  CHECK(places.find({"a"})->is_static);
  CHECK(places.find({"a"})->index == 2);
  CHECK(places.size() == 1);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/job_note.h"

#include "test/support/catch.h"

using namespace flex;

TEST_CASE("with_note: replaces our part and keeps what others wrote", "[core]") {
  CHECK(with_note("", "hello") == "flex: hello");
  CHECK(with_note("flex: old", "new") == "flex: new");
  CHECK(with_note("billing=42", "new") == "billing=42 | flex: new");
  CHECK(with_note("billing=42 | flex: old", "new") == "billing=42 | flex: new");
  CHECK(with_note("a | b", "new") == "a | b | flex: new");
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/text.h"

#include "lib/core/job_wish.h"
#include "test/support/catch.h"

using namespace flex;

TEST_CASE("text: what moves a terminal's cursor or turns its writing is not printed", "[core]") {
  CHECK(printable("für 16 Knoten … 机") == "für 16 Knoten … 机");
  CHECK(printable("a\tb\nc\033[2J\x7f") == "a b c [2J ");
  CHECK(printable("a\u009b31mb\u0080c\u009fd") == "a 31mb c d");
  CHECK(printable("a\u202eb\u2066c\u2069\u2028d") == "a b c  d");
  CHECK(printable("\u00a0\u2027\u202f\u2065") == "\u00a0\u2027\u202f\u2065");
}

TEST_CASE("text: what is no UTF-8 is not printed", "[core]") {
  CHECK(printable("a\x9b"
                  "2Jb",
                  '?') == "a?2Jb");
  CHECK(printable("\xc3", '?') == "?");
  CHECK(printable("\xc0\xaf", '?') == "??");            // overlong
  CHECK(printable("\xed\xa0\x80", '?') == "???");       // half of a surrogate pair
  CHECK(printable("\xf4\x90\x80\x80", '?') == "????");  // beyond Unicode
  CHECK(printable("\xe2\x80z", '?') == "??z");
}

TEST_CASE("text: a job's comment cannot carry an escape into ours", "[core]") {
  const JobWish wish = parse_wish("flex(run=\u009b2J\u202eh)");
  REQUIRE(wish.problems.size() == 1);
  CHECK_THAT(wish.problems.front(), ContainsSubstring("run=?2J?h: "));
}

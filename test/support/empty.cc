// SPDX-License-Identifier: GPL-2.0-or-later
// Gives the library of Catch2's main something to hold where Catch2 v3 brings its own main.
namespace flex::test {
extern const int kNothing;
const int kNothing = 0;
}  // namespace flex::test

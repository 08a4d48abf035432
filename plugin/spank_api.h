// SPDX-License-Identifier: GPL-2.0-or-later
// <slurm/spank.h> as C++ can use it: it declares the callbacks before its own extern "C", and they
// must be visible in a module that hides everything else.
#pragma once

#pragma GCC visibility push(default)
extern "C" {
#include <slurm/spank.h>
}
#pragma GCC visibility pop

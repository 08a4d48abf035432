// SPDX-License-Identifier: GPL-2.0-or-later
// Precompiled where meson is told to (-Db_pch=true): what most sources of this directory include.
// No source relies on it.

#include "lib/fleet/view.h"
#include "test/support/catch.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

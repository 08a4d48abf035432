// SPDX-License-Identifier: GPL-2.0-or-later
// Slurm's error numbers as our Errors (pure).
#pragma once

#include "lib/core/result.h"

#include <string_view>

namespace flex::slurm {

/// "doing: <Slurm's text> (2017)", with the kind that tells what to do next and Slurm's own name
/// for the number as code ("SLURM_<number>" for one that we do not know).
[[nodiscard]] Error to_error(int number, std::string_view doing);

/// The error number behind a return code of libslurm: it gives either -1 with errno or the number
/// itself; 0 is success. To be called before anything else can touch errno.
[[nodiscard]] int error_number(int return_code);

/// What became of a call that returns nothing but whether it worked. As above, before anything
/// else can touch errno.
[[nodiscard]] Result<Done> to_result(int return_code, std::string_view doing);

}  // namespace flex::slurm

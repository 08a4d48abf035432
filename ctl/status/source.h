// SPDX-License-Identifier: GPL-2.0-or-later
// Where flexctl status gets its picture from: the sweeper's file, the sweeper's port, or a look of
// its own.
#pragma once

#include "ctl/setup.h"
#include "lib/gce/cloud.h"
#include "sweeper/snapshot.h"

#include <memory>
#include <string>
#include <vector>

namespace flex {

struct StatusText {
  std::string text{};                  ///< as status.json
  std::string from{};                  ///< "file", "http" or "live"
  std::string where{};                 ///< path or address
  std::vector<std::string> trouble{};  ///< why it is not the file
};

class StatusSource {
 public:
  /// `is_live`: always a look of its own.
  StatusSource(Setup& setup, bool is_live) : setup_(setup), is_live_(is_live) {}

  /// The file; if it cannot be read, the port; if nobody answers there, or only a sweeper that is
  /// passive, a look of its own.
  [[nodiscard]] Result<StatusText> read();

  /// What read() is about to do, for who waits for it.
  [[nodiscard]] std::string doing() const;

 private:
  /// A look of its own; `why`, if that was not asked for.
  Result<StatusText> look(const std::string& why);
  /// What a sweeper says, unless it is passive.
  Result<StatusText> heed(StatusText said);

  Setup& setup_;
  bool is_live_;
  std::string state_dir_{};
  std::unique_ptr<Cloud> cloud_{};
  Snapshot shot_{};  ///< kept from look to look: Slurm then tells only what has changed
};

}  // namespace flex

// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/scheduler.h"

namespace flex {

std::string_view to_string(NodeRequest request) {
  switch (request) {
    case NodeRequest::PowerUp:
      return "POWER_UP";
    case NodeRequest::PowerDown:
      return "POWER_DOWN";
    case NodeRequest::PowerDownForce:
      return "POWER_DOWN_FORCE";
    case NodeRequest::PowerDownAsap:
      return "POWER_DOWN_ASAP";
    case NodeRequest::Down:
      return "DOWN";
    case NodeRequest::Idle:
      return "IDLE";
    case NodeRequest::Resume:
      return "RESUME";
    case NodeRequest::Drain:
      return "DRAIN";
    case NodeRequest::Undrain:
      return "UNDRAIN";
  }
  return "?";
}

}  // namespace flex

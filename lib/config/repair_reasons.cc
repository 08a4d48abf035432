// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/config.h"

namespace flex {

// What health checks in the field write, so that a broken GPU is replaced without anybody asking,
// and nothing that an admin writes who upgrades a driver: the plain words "gpu", "nvidia" and
// "dcgm" are not here. Neither are Slurm's "Prolog error" and "Epilog error": a mistake in a prolog
// drains every node, and new VMs would not mend it. Nor "SDC", which is also the name of a disk.
std::vector<std::string> default_repair_reasons() {
  return {
      // The driver's number of a GPU error ("Xid 79"), in NHC's check_gpu_xid and as the reason
      // with which SlurmGCP repairs; and what the driver says to 79 and 74.
      "xid",
      "fallen off the bus",
      "nvlink error",
      // SlurmGCP's prolog and epilog, where they write a reason.
      "gpu issues detected",
      "gpu error",
      "ecc error",
      "dcgm test failed",
      // Prologs that run the two tools of NVIDIA.
      "failed dcgm",
      "dcgm error",
      "dcgmi diag",
      "failed nvidia-smi",
      "nvidia-smi failed",
      // NHC: its own check_nvsmi_healthmon, and check_nv_gpu_count, check_gpu_count, check_gpu_ecc,
      // check_nvlink_status and the like of sites.
      "check_nv",
      "check_gpu",
      // slurmd itself, when a GPU has gone: "gres/gpu count reported lower than configured".
      "gres/gpu count",
  };
}

}  // namespace flex

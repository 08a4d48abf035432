#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A heterogeneous job on Flex Start VMs: a node that prepares the data, and GPU nodes that train on it. Each component is
# a request of its own, in a partition of its own; the job starts when the VMs of all are there. Submit it where
# train.py is, in a directory that all nodes share:
#   sbatch het.sh [OPTION of train.py]...
#
#SBATCH --job-name=het
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.out
#
# The options of Flex Start stand in each component. VMs live from the moment they are made, so those that come first
# grow older while the others are waited for: ask for VMs that live that much longer than --time.
#SBATCH --partition=h4d --nodes=1 --ntasks=1 --time=4:00:00
#SBATCH --flex-run-duration=10h
#SBATCH --flex-max-wait=6h
#SBATCH --flex-on-timeout=hold
# Without the plugin, say the same in the comment: delete the three lines above and one # below.
##SBATCH --comment='flex(run=10h,wait=6h,ontimeout=hold)'
#
#SBATCH hetjob
#SBATCH --partition=a3u --nodes=2 --ntasks-per-node=1 --time=4:00:00 --signal=USR1@300
#SBATCH --flex-run-duration=10h
#SBATCH --flex-max-wait=6h
#SBATCH --flex-on-timeout=hold
##SBATCH --comment='flex(run=10h,wait=6h,ontimeout=hold)'
set -u

checkpoint=${CHECKPOINT:-$SLURM_SUBMIT_DIR/$SLURM_JOB_NAME-$SLURM_JOB_ID.json}

# Of the VM that ends first, whatever its component.
echo "time left: $(flex-timeleft --human 2>/dev/null || echo unknown)"

# Your program that feeds the others; here it only says that it is there.
# shellcheck disable=SC2016 # for the shell on the node
srun --het-group=0 sh -c 'echo "prepares on $SLURMD_NODENAME"; exec sleep infinity' &
feeder=$!

# Saves and stops when it is warned: see train.sh and train.py.
code=0
srun --het-group=1 python3 "${TRAIN:-$SLURM_SUBMIT_DIR/train.py}" --checkpoint "$checkpoint" "$@" || code=$?
kill "$feeder"
wait

# All components go back into the queue together.
if [ "$code" -eq 75 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"

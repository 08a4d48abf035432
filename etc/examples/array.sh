#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A job array on Flex Start VMs: each task is a job of its own, with a request and VMs of its own, and starts as soon as
# they are there. Each does a number of pieces, and after a requeue only those that are not done.
#   sbatch array.sh [PIECES [SECONDS]]      pieces of each task, and how long one takes
#
#SBATCH --job-name=array
#SBATCH --partition=a3u
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --array=0-7%4             # no more than 4 tasks have or await VMs at once
#SBATCH --time=1:00:00            # of each task
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%A_%a.out
#SBATCH --signal=B:USR1@300       # Slurm's own warning before the time limit; B: to this script, not to its steps
#
# What is asked of Flex Start, for each task.
#SBATCH --flex-max-wait=6h        # a task whose VM is not there by then ...
#SBATCH --flex-on-timeout=requeue # ... goes back into the queue and asks again; or: hold, cancel
# Without the plugin, say the same in the comment: delete the two lines above and one # below.
##SBATCH --comment='flex(wait=6h,ontimeout=requeue)'
set -u

pieces=${1:-10}
seconds=${2:-60}
results=${RESULTS:-$SLURM_SUBMIT_DIR/$SLURM_JOB_NAME-$SLURM_ARRAY_JOB_ID}
mkdir -p "$results"

# URG comes ten minutes before the VM ends. Bash runs a trap when the command under way is over.
warning=""
trap 'warning=yes' URG USR1

# Whether another piece can be done before the VM ends. Not known (3) and not installed (127) count as yes.
has_time() {
  local code=0
  flex-timeleft --min="${PIECE_TIME:-5m}" >/dev/null 2>&1 || code=$?
  [ -z "$warning" ] && [ "$code" -ne 1 ]
}

for piece in $(seq "$pieces"); do
  result=$results/$SLURM_ARRAY_TASK_ID-$piece
  [ -e "$result" ] && continue
  if ! has_time; then
    echo "goes back into the queue before piece $piece"
    # By task: the job's number alone could mean the whole array.
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
    exit
  fi
  # Your program here. A result gets its name when it is whole.
  # shellcheck disable=SC2016 # for the shell on the node
  srun sh -c 'sleep "$1" && echo "task $SLURM_ARRAY_TASK_ID piece $2 on $SLURMD_NODENAME"' sh "$seconds" "$piece" \
    >"$result.new" && mv "$result.new" "$result"
done
echo "done: $(find "$results" -name "$SLURM_ARRAY_TASK_ID-*" ! -name '*.new' | wc -l) pieces"

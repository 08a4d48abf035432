#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A training on Flex Start VMs that outlives them: it saves its work when it is warned, goes back into the queue and
# goes on from there. Submit it where train.py is, in a directory that all nodes share:
#   sbatch train.sh [OPTION of train.py]...
#
#SBATCH --job-name=train
#SBATCH --partition=a3u
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=4:00:00            # so long it may run before it goes back into the queue
#SBATCH --requeue                 # it may be started again ...
#SBATCH --open-mode=append        # ... and then adds to its output
#SBATCH --output=%x-%j.out
#SBATCH --signal=USR1@300         # Slurm's own warning, 5 minutes before the time limit
#
# What is asked of Flex Start; without these lines the VMs live as long as --time and a little more, and the job waits
# for them as long as the site lets it. VMs all come at once, and end all at once.
#SBATCH --flex-run-duration=5h    # how long the VMs live, 10 minutes to 7 days
#SBATCH --flex-max-wait=12h       # if they are not there by then ...
#SBATCH --flex-on-timeout=hold    # ... the job is held; or: requeue, cancel
# Where sbatch does not know these options (their plugin is not installed), say the same in the comment: delete the
# three lines above and one # below.
##SBATCH --comment='flex(run=5h,wait=12h,ontimeout=hold)'
#
# While it waits, "scontrol show job" says for what and since when (AdminComment). Ten minutes before its VMs end
# (lease_warning of the site) the job gets SIGURG, which programs that do not know it ignore; train.py saves and stops.
# One that does not stop is requeued when its VMs are gone.
set -u

# Not on the VM's own disk: that goes with the VM. The job keeps its number when it is requeued.
checkpoint=${CHECKPOINT:-$SLURM_SUBMIT_DIR/$SLURM_JOB_NAME-$SLURM_JOB_ID.json}

code=0
srun python3 "${TRAIN:-$SLURM_SUBMIT_DIR/train.py}" --checkpoint "$checkpoint" "$@" || code=$?

# 75 is what train.py says when it has saved its work but is not done.
if [ "$code" -eq 75 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"

#!/bin/bash
# Runs a simulation on several machines, as many jobs as it takes: sbatch examples/slurm/job.sh RUN_FILE OUTPUT_DIRECTORY
#SBATCH --job-name=fedge
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@60
set -u
time_limit=14400  # seconds, as --time
run_file=$1
results=$2

# Each rank uses all processors that its task has. --kill-on-bad-exit ends the others when one rank has failed.
srun --mpi=pmix --kill-on-bad-exit=1 fedge-sim run "$run_file" --out "$results" --resume
code=$?

# The job's time is over: the next job continues the run.
if [ "$code" -ne 0 ] && [ "$SECONDS" -ge $((time_limit - 120)) ]; then
  sbatch "$0" "$run_file" "$results"
  exit
fi
exit "$code"

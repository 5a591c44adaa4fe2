#!/usr/bin/env bash
# Evaluates on a slurm cluster.
#   GPUS=8 tools/slurm_test.sh PARTITION JOB CONFIG [CHECKPOINT] [arguments of tools/test.py]
# GPUS in total (8), GPUS_PER_NODE (8), CPUS_PER_TASK (5), SRUN_ARGS.
set -euo pipefail
[ $# -ge 3 ] || { sed -n 2,4p "$0" | cut -c3-; exit 2; }
tools=$(dirname "$0")
gpus=${GPUS:-8}
per_node=${GPUS_PER_NODE:-8}
[ "$per_node" -le "$gpus" ] || per_node=$gpus

# shellcheck disable=SC2086  # SRUN_ARGS may be several words
exec srun -p "$1" --job-name="$2" --gres=gpu:"$per_node" --ntasks="$gpus" \
    --ntasks-per-node="$per_node" --cpus-per-task="${CPUS_PER_TASK:-5}" --kill-on-bad-exit=1 \
    ${SRUN_ARGS:-} python -u "$tools/test.py" "${@:3}" --launcher slurm

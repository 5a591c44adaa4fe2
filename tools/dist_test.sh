#!/usr/bin/env bash
# Evaluates with several processes, on GPUs or, where there are none, on CPU cores.
#   tools/dist_test.sh CONFIG CHECKPOINT PROCESSES [arguments of tools/test.py]
# Several machines: set NNODES, NODE_RANK and MASTER_ADDR on each; PORT if 29500 is taken.
set -euo pipefail
[ $# -ge 3 ] || { sed -n 2,4p "$0" | cut -c3-; exit 2; }
cd "$(dirname "$0")/.."

exec python -m torch.distributed.run \
    --nnodes="${NNODES:-1}" --node_rank="${NODE_RANK:-0}" \
    --master_addr="${MASTER_ADDR:-127.0.0.1}" --master_port="${PORT:-29500}" \
    --nproc_per_node="$3" tools/test.py "$1" "$2" --launcher pytorch "${@:4}"

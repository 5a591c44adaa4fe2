#!/usr/bin/env bash
# Starts the processes of tools/dist_train.sh and tools/dist_test.sh.
#   tools/torchrun.sh PROCESSES SCRIPT [arguments of SCRIPT]
# It uses the interpreter PYTHON (default: python).
# For several machines set NNODES, NODE_RANK and MASTER_ADDR on each, and PORT if 29500 is taken.
set -euo pipefail
if [ "${NNODES:-1}" = 1 ]; then
    # The launcher binds a free port, so that runs on one machine cannot connect to each other.
    rendezvous=(--standalone --local_addr=127.0.0.1)
else
    rendezvous=(--nnodes="$NNODES" --node_rank="${NODE_RANK:?is the number of this machine, from 0}"
        --master_addr="${MASTER_ADDR:?is the address of machine 0}" --master_port="${PORT:-29500}")
fi
exec "${PYTHON:-python}" -m torch.distributed.run "${rendezvous[@]}" --nproc_per_node="$1" "${@:2}"

#!/usr/bin/env bash
# Evaluates with several processes, on GPUs or, without GPUs, on CPU cores.
#   tools/dist_test.sh CONFIG [CHECKPOINT] PROCESSES [arguments of tools/test.py]
# Several machines: see tools/torchrun.sh.
set -euo pipefail
given=("${1:-}")
case "${2:-}" in # the processes, or first a checkpoint
    *[!0-9]*) given+=("$2"); shift ;;
esac
[ $# -ge 2 ] || { sed -n 2,4p "$0" | cut -c3-; exit 2; }
tools=$(dirname "$0")

export XMODAL_LAUNCHER=$$ # which exec keeps: the processes end when it is gone
exec "$tools/torchrun.sh" "$2" "$tools/test.py" "${given[@]}" --launcher pytorch "${@:3}"

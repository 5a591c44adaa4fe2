#!/usr/bin/env bash
# Trains with several processes, on GPUs or, without GPUs, on CPU cores.
#   tools/dist_train.sh CONFIG PROCESSES [arguments of tools/train.py]
# Several machines: see tools/torchrun.sh.
set -euo pipefail
[ $# -ge 2 ] || { sed -n 2,4p "$0" | cut -c3-; exit 2; }
tools=$(dirname "$0")

export XMODAL_LAUNCHER=$$ # the processes end when this script is gone
set -m # signals reach the launcher through this script alone
"$tools/torchrun.sh" "$2" "$tools/train.py" "$1" --launcher pytorch "${@:3}" &
launcher=$!
# Signals go to the processes only: they save and exit with 0, and so does the launcher. If the
# launcher got the signal itself, it would report a failure. It does before it has started them.
interrupted=
trap 'pkill -TERM -P $launcher || kill -TERM $launcher || :' TERM
trap 'interrupted=1; pkill -INT -P $launcher || kill -TERM $launcher || :' INT
status=0
wait $launcher || status=$?
while kill -0 $launcher 2>/dev/null; do # a signal ended the wait
    status=0
    wait $launcher || status=$?
done
[ -z $interrupted ] || status=130
exit $status

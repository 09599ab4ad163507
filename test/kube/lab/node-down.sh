#!/bin/bash
# node-down.sh N: stop node N as a power failure does; its files stay, and node-up.sh starts it again. Also used by down.sh.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
n=${1:?usage: node-down.sh N}
ns=kubelab-node$n
pids=()
init=$(node_init_pid "$n" 2>/dev/null) && pids+=("$init")
# --kill-child: the kernel then ends all processes of the PID namespace
stop "$KUBELAB_RUN/pid/node$n" 'unshare|nsenter|setsid'
# Processes in the node's network namespace that are not in its PID namespace.
for p in $(ip netns pids "$ns" 2>/dev/null); do kill -9 "$p" 2>/dev/null || true; done
for p in "${pids[@]}"; do WAIT=20 wait_for "process $p to end" gone "$p"; done
rm -f "$KUBELAB_RUN/pid/node$n"

ip netns del "$ns"
ip link del "kl-node$n" 2>/dev/null
for d in /sys/fs/cgroup/"$ns" /sys/fs/cgroup/*/"$ns"; do
  [ ! -d "$d" ] || find "$d" -depth -type d -exec rmdir {} \; 2>/dev/null
done
true

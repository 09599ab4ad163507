#!/bin/bash
# down.sh: end the cluster and remove all it left. SIGKILL everywhere: nothing of it is to be kept.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
[ -e "$KUBELAB_RUN/.kubelab" ] || die "no cluster in $KUBELAB_RUN"

# stop PIDFILE COMMAND-PATTERN: kill the process if it still is what we started
stop() {
  local pid; pid=$(cat "$1" 2>/dev/null) || return
  grep -qaE -- "$2" "/proc/$pid/cmdline" 2>/dev/null && kill -9 "$pid" && pids+=("$pid")
}
# a zombie counts as gone: only its parent can do more
gone() { ! grep -q '^State:[[:space:]]*[^Z]' "/proc/$1/status" 2>/dev/null; }

pids=() nodes=()
for f in "$KUBELAB_RUN"/pid/node*; do
  [ -e "$f" ] || continue
  n=${f##*/node}; nodes+=("$n")
  init=$(node_init_pid "$n") && pids+=("$init")
  stop "$f" 'unshare|nsenter|setsid' # --kill-child: the PID namespace dies with it
done
for n in kube-scheduler kube-controller-manager kube-apiserver contiv-etcd etcd; do stop "$KUBELAB_RUN/pid/$n" "$n"; done
# What was put into a node's network namespace from outside of its PID namespace.
for n in "${nodes[@]}"; do
  for p in $(ip netns pids "kubelab-node$n" 2>/dev/null); do kill -9 "$p" 2>/dev/null || true; done
done
for p in "${pids[@]}"; do WAIT=20 wait_for "process $p to end" gone "$p"; done

for n in "${nodes[@]}"; do
  ns=kubelab-node$n
  ip netns del "$ns"
  ip link del "kl-node$n" 2>/dev/null
  for d in /sys/fs/cgroup/"$ns" /sys/fs/cgroup/*/"$ns"; do
    [ ! -d "$d" ] || find "$d" -depth -type d -exec rmdir {} \; 2>/dev/null
  done
done
ip link del "$BRIDGE" 2>/dev/null
rm -rf --one-file-system "$KUBELAB_RUN"

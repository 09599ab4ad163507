#!/bin/bash
# node-up.sh N: start node N in its own net, mount, UTS and PID namespaces. Used by up.sh.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
set -euo pipefail
N=$1 NAME=node$1 NS=kubelab-node$1
ND=$KUBELAB_RUN/$NAME
export N NAME ND
mkdir -p "$KUBELAB_RUN"/{log,pid} "$ND"/{containerd,kubelet,cni-net.d,cni-bin,cni-state,contiv-data,log,cgroup}

ip netns add "$NS"
ip link add "kl-$NAME" type veth peer name eth0 netns "$NS"
ip link set "kl-$NAME" master "$BRIDGE" up
ip netns exec "$NS" ethtool -K eth0 tx off >/dev/null
ip -n "$NS" link set lo up
ip -n "$NS" addr add "10.10.0.1$N/24" dev eth0
ip -n "$NS" link set eth0 up
ip -n "$NS" route add default via 10.10.0.1
ip netns exec "$NS" sysctl -qw net.ipv4.ip_forward=1
if [ "${DUAL:-0}" = 1 ]; then
  ip -n "$NS" addr add "fd00:10::1$N/64" dev eth0 nodad
  ip -n "$NS" route replace default via fd00:10::1
  ip netns exec "$NS" sysctl -qw net.ipv6.conf.all.forwarding=1 net.ipv6.conf.default.accept_dad=0
fi

# One cgroup per node, the kubelet's cgroupRoot.
cg=/sys/fs/cgroup
if [ "$(stat -fc %T $cg)" = cgroup2fs ]; then # cgroup v2: not tested yet
  mkdir -p "$cg/$NS"
  echo "+cpu +cpuset +memory +pids" | tee $cg/cgroup.subtree_control > "$cg/$NS/cgroup.subtree_control"
else
  for c in cpu cpuacct cpuset memory devices freezer blkio pids systemd; do mkdir -p "$cg/$c/$NS"; done
  # Pods have the CPU weight that they have beside the daemons of a node; here each job of the machine counts as such a daemon.
  echo 20480 > "$cg/cpu/$NS/cpu.shares"
  for f in cpuset.cpus cpuset.mems; do cat "$cg/cpuset/$f" > "$cg/cpuset/$NS/$f"; done
fi

# Not `ip netns exec`: it mounts a new /sys, which hides the cgroup tree.
setsid nsenter --net="/run/netns/$NS" \
  unshare --mount --uts --pid --fork --kill-child --mount-proc --propagation private \
  "$KUBELAB_DIR/node-init.sh" > "$KUBELAB_RUN/log/$NAME.log" 2>&1 < /dev/null &
echo $! > "$KUBELAB_RUN/pid/$NAME"

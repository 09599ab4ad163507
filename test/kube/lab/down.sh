#!/bin/bash
# down.sh: stop the cluster and remove its files. All processes get SIGKILL, because no state is kept.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
[ -e "$KUBELAB_RUN/.kubelab" ] || die "no cluster in $KUBELAB_RUN"

for f in "$KUBELAB_RUN"/pid/node*; do
  [ -e "$f" ] || continue
  "$KUBELAB_DIR/node-down.sh" "${f##*/node}" &
done
wait
pids=()
for n in kube-scheduler kube-controller-manager kube-apiserver contiv-etcd etcd; do stop "$KUBELAB_RUN/pid/$n" "$n"; done
for p in "${pids[@]}"; do WAIT=20 wait_for "process $p to end" gone "$p"; done
ip link del "$BRIDGE" 2>/dev/null
rm -rf --one-file-system "$KUBELAB_RUN"

#!/bin/bash
# control-plane.sh: etcd, apiserver, controller manager and scheduler as host processes. Used by up.sh.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
set -euo pipefail
set_cidrs
mkdir -p "$KUBELAB_RUN"/{log,pid,etcd}

start() { # NAME CMD...
  local n=$1; shift
  setsid "$@" > "$KUBELAB_RUN/log/$n.log" 2>&1 < /dev/null &
  echo $! > "$KUBELAB_RUN/pid/$n"
}

start etcd "$BIN/etcd" --data-dir "$KUBELAB_RUN/etcd" --log-level warn --unsafe-no-fsync \
  --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380

# Contiv's own etcd, which agents on all nodes reach.
if [ "${CNI_CONF:-bridge}" = none ]; then
  start contiv-etcd "$BIN/etcd" --data-dir "$KUBELAB_RUN/contiv-etcd" --log-level warn --unsafe-no-fsync \
    --listen-client-urls http://10.10.0.1:2479 --advertise-client-urls http://10.10.0.1:2479 \
    --listen-peer-urls http://127.0.0.1:2480
fi

# shellcheck disable=SC2086 # API_ARGS is a list of options
start kube-apiserver "$BIN/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
  --secure-port=6443 --bind-address=0.0.0.0 --advertise-address=10.10.0.1 \
  --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" --client-ca-file="$PKI/ca.crt" \
  --kubelet-client-certificate="$PKI/apiserver-kubelet.crt" --kubelet-client-key="$PKI/apiserver-kubelet.key" \
  --kubelet-preferred-address-types=InternalIP \
  --service-account-key-file="$PKI/sa.pub" --service-account-signing-key-file="$PKI/sa.key" \
  --service-account-issuer=https://kubernetes.default.svc.cluster.local \
  --service-cluster-ip-range="$SVC_CIDR" --service-node-port-range=30000-32767 \
  --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
  --max-requests-inflight=2000 --max-mutating-requests-inflight=1000 --profiling=false \
  --requestheader-client-ca-file="$PKI/ca.crt" --requestheader-allowed-names=front-proxy-client \
  --requestheader-extra-headers-prefix=X-Remote-Extra- --requestheader-group-headers=X-Remote-Group \
  --requestheader-username-headers=X-Remote-User \
  --proxy-client-cert-file="$PKI/front-proxy.crt" --proxy-client-key-file="$PKI/front-proxy.key" ${API_ARGS:-}

export KUBECONFIG=$PKI/admin.kubeconfig
ready() {
  kill -0 "$(cat "$KUBELAB_RUN/pid/kube-apiserver")" || {
    tail -5 "$KUBELAB_RUN/log/kube-apiserver.log" >&2
    die "kube-apiserver exited"
  }
  "$BIN/kubectl" get --raw /readyz
}
wait_for "the apiserver" ready

kcm=$PKI/kube-controller-manager.kubeconfig sched=$PKI/kube-scheduler.kubeconfig
start kube-controller-manager "$BIN/kube-controller-manager" --leader-elect=false --profiling=false \
  --kubeconfig="$kcm" --authentication-kubeconfig="$kcm" --authorization-kubeconfig="$kcm" \
  --root-ca-file="$PKI/ca.crt" --service-account-private-key-file="$PKI/sa.key" \
  --cluster-signing-cert-file="$PKI/ca.crt" --cluster-signing-key-file="$PKI/ca.key" \
  --use-service-account-credentials --allocate-node-cidrs --cluster-cidr="$POD_CIDR" \
  --service-cluster-ip-range="$SVC_CIDR" --node-monitor-period=2s --kube-api-qps=200 --kube-api-burst=400
start kube-scheduler "$BIN/kube-scheduler" --leader-elect=false --profiling=false \
  --kubeconfig="$sched" --authentication-kubeconfig="$sched" --authorization-kubeconfig="$sched" \
  --kube-api-qps=200 --kube-api-burst=400
wait_for "the controller manager" curl -sfk https://127.0.0.1:10257/healthz
wait_for "the scheduler" curl -sfk https://127.0.0.1:10259/healthz
wait_for "the default service account" "$BIN/kubectl" -n default get sa default

#!/bin/bash
# PID 1 of a node, started by node-up.sh: private standard paths, then containerd, kubelet, kube-proxy.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
set -eu
set_cidrs
hostname "$NAME"

# A sysfs of this network namespace, which keeps the cgroup tree.
mount --rbind /sys/fs/cgroup "$ND/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$ND/cgroup" /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf || true

# /run is often mounted noexec, so these bind mounts are remounted with exec.
private() { mkdir -p "$2"; mount --bind "$ND/$1" "$2"; mount -o remount,bind,exec,suid,dev "$2"; }
private containerd /var/lib/containerd
private kubelet /var/lib/kubelet
private cni-net.d /etc/cni/net.d
private cni-bin /opt/cni/bin
private cni-state /var/lib/cni
private contiv-data /var/lib/contiv
private log /var/log
# A private /run; $KUBELAB_RUN stays visible if it is in /run.
mount --rbind "$KUBELAB_RUN" /mnt
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/containerd /run/lock "$KUBELAB_RUN"
mount --rbind /mnt "$KUBELAB_RUN"
umount -l /mnt
mount --make-rshared / # for mountPropagation of hostPath volumes

export PATH=$BIN:$PATH
cp "$CNI_BIN"/* /opt/cni/bin/
cp "$KUBELAB_DIR/containerd.toml" /run/containerd.toml
containerd -c /run/containerd.toml > /var/log/containerd.log 2>&1 &
wait_for containerd ctr version
for i in "$IMAGES"/*.tar; do ctr -n k8s.io images import --all-platforms "$i"; done

echo 'nameserver 10.96.0.10' > /run/resolv.conf
cat > /run/kubelet.yaml <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $PKI/$NAME.crt
tlsPrivateKeyFile: $PKI/$NAME.key
cgroupDriver: cgroupfs
cgroupRoot: /kubelab-$NAME
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0 # a negative one needs CAP_SYS_RESOURCE
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
clusterDomain: cluster.local
clusterDNS: [10.96.0.10]
resolvConf: /run/resolv.conf
enforceNodeAllocatable: [pods]
localStorageCapacityIsolation: false
evictionHard: {memory.available: "1Mi", nodefs.available: "0%", imagefs.available: "0%"}
imageGCHighThresholdPercent: 100
serializeImagePulls: false
registryPullQPS: 0
eventRecordQPS: 0
kubeAPIQPS: 200
kubeAPIBurst: 400
maxPods: 250
nodeStatusUpdateFrequency: 5s
logging: {verbosity: 2}
YAML
ip=10.10.0.1$N
[ "${DUAL:-0}" != 1 ] || ip=$ip,fd00:10::1$N
kubelet --config=/run/kubelet.yaml --kubeconfig="$PKI/$NAME.kubeconfig" --hostname-override="$NAME" \
  --node-ip="$ip" --root-dir=/var/lib/kubelet > /var/log/kubelet.log 2>&1 &

if [ "${CNI_CONF:-bridge}" = bridge ]; then "$KUBELAB_DIR/bridge-agent.sh" > /var/log/bridge-agent.log 2>&1 & fi

if [ "${PROXY:-1}" = 1 ]; then
  # conntrack: a network namespace cannot write nf_conntrack_max
  cat > /run/kube-proxy.yaml <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $PKI/kube-proxy.kubeconfig}
mode: ${PROXY_MODE:-nftables}
clusterCIDR: $POD_CIDR
hostnameOverride: $NAME
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
nftables: {syncPeriod: 30s, minSyncPeriod: 0.1s}
iptables: {syncPeriod: 30s, minSyncPeriod: 0.1s}
YAML
  kube-proxy --config=/run/kube-proxy.yaml > /var/log/kube-proxy.log 2>&1 &
fi

trap 'exit 0' TERM
while :; do wait -n 2>/dev/null || sleep 1; done # reap until killed

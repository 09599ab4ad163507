#!/bin/bash
# up.sh [NODES]: a cluster of NODES (0 to 9, default 2) nodes; 0 is a control plane alone.
# Options (environment): DUAL=1, CNI_CONF=bridge|none, PROXY=1|0, PROXY_MODE=nftables|iptables, DNS=1|0, API_ARGS.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
set -euo pipefail
nodes=${1:-2}
[[ $nodes =~ ^[0-9]$ ]] || die "NODES must be 0 to 9"
[ "$(id -u)" = 0 ] || die "must run as root"
[ -z "$(ls -A "$KUBELAB_RUN" 2>/dev/null)" ] || die "$KUBELAB_RUN is not empty: down.sh first"
for f in kube-apiserver kubelet containerd etcd; do [ -x "$BIN/$f" ] || die "no $f in $BIN: build.sh first"; done
export DUAL=${DUAL:-0} CNI_CONF=${CNI_CONF:-bridge} PROXY=${PROXY:-1} PROXY_MODE=${PROXY_MODE:-nftables}
export BIN CNI_BIN IMAGES PKI

start=$EPOCHREALTIME
elapsed() { awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN{printf "%.1f s", b - a}'; }

mkdir -p "$KUBELAB_RUN"
: > "$KUBELAB_RUN/.kubelab" # down.sh removes only a directory that has this file
"$KUBELAB_DIR/pki.sh" "$nodes"
ip link add "$BRIDGE" type bridge
ip addr add 10.10.0.1/24 dev "$BRIDGE"
ip link set "$BRIDGE" up
# Compute all checksums, as on a wire: a program that reads packets by AF_PACKET (VPP) does not get the kernel's checksum metadata.
ethtool -K "$BRIDGE" tx off >/dev/null
sysctl -qw net.ipv4.ip_forward=1
if [ "$DUAL" = 1 ]; then
  ip addr add fd00:10::1/64 dev "$BRIDGE" nodad
  sysctl -qw net.ipv6.conf.all.forwarding=1
fi
# Nodes first: importing the images overlaps with the apiserver's start, and the kubelet retries.
for i in $(seq "$nodes"); do "$KUBELAB_DIR/node-up.sh" "$i"; done
"$KUBELAB_DIR/control-plane.sh"
echo "control plane ready after $(elapsed)"

export KUBECONFIG=$KUBELAB_RUN/kubeconfig
k() { "$BIN/kubectl" "$@"; }
k create clusterrolebinding kube-proxy --clusterrole=system:node-proxier --user=system:kube-proxy >/dev/null

# Without a conflist the nodes register but stay NotReady until the plugin under test installs one.
state=' Ready '
[ "$CNI_CONF" = bridge ] || state=node
all_nodes() { [ "$(k get nodes --no-headers | grep -c "$state")" = "$nodes" ]; }
all_cidrs() { [ "$(k get nodes -o jsonpath='{.items[*].spec.podCIDR}' | wc -w)" = "$nodes" ]; }
wait_for "$nodes nodes" all_nodes
wait_for "the pod CIDRs" all_cidrs

# Routes from the host to pods (the apiserver's pod proxy, webhooks): without them the packets leave by the default route. A plugin under
# test assigns the pods' networks to nodes itself.
# shellcheck disable=SC2016 # a Go template
tmpl='{{range .items}}{{$a := .status.addresses}}{{range .spec.podCIDRs}}{{.}}'
# shellcheck disable=SC2016
tmpl+='{{range $a}}{{if eq .type "InternalIP"}} {{.address}}{{end}}{{end}}{{"\n"}}{{end}}{{end}}'
[ "$CNI_CONF" = none ] || k get nodes -o go-template="$tmpl" | while read -r cidr v4 v6; do
  case $cidr in *:*) ip route replace "$cidr" via "$v6" ;; *) ip route replace "$cidr" via "$v4" ;; esac
done
[ "$nodes" = 0 ] || echo "$nodes node(s) up after $(elapsed)"

if [ "${DNS:-1}" = 1 ] && [ "$CNI_CONF" = bridge ] && [ "$nodes" != 0 ]; then
  k apply -f "$KUBELAB_DIR/coredns.yaml" >/dev/null
  k -n kube-system rollout status deploy/coredns --timeout=60s >/dev/null
  echo "DNS ready after $(elapsed)"
fi
echo "export KUBECONFIG=$KUBECONFIG PATH=$BIN:\$PATH"

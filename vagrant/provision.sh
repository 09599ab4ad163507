#!/bin/sh
# provision.sh: make this Debian 12 machine a node of a Kubernetes cluster with Contiv. It can be run again.
# Environment: ROLE control-plane|worker, NODE_IP, CONTROL_PLANE_IP, NODE_NAMES (all nodes); optional DATAPLANE linux|vpp,
# CONTIV (the repository, /contiv), KUBERNETES (minor version), ROOT (prefix of files that are written, for tests).
set -eu

: "${ROLE:?control-plane or worker}" "${NODE_IP:?address of this node}"
: "${CONTROL_PLANE_IP:?address of the first node}" "${NODE_NAMES:?names of all nodes}"
DATAPLANE=${DATAPLANE:-linux}
CONTIV=${CONTIV:-/contiv}
KUBERNETES=${KUBERNETES:-v1.34}
ROOT=${ROOT:-}
# The machines are for trials and reach only each other, so all of them have the token that admits nodes.
TOKEN=c0ntiv.vagrantvagrant00

case $ROLE in
control-plane | worker) ;;
*)
	echo "ROLE=$ROLE: use control-plane or worker" >&2
	exit 1
	;;
esac
case $DATAPLANE in
linux | vpp) ;;
*)
	echo "DATAPLANE=$DATAPLANE: use linux or vpp" >&2
	exit 1
	;;
esac

# prepare_kernel: sets what kubeadm requires. VPP also requires hugepages and its drivers.
prepare_kernel() {
	swapoff -a
	mkdir -p "$ROOT/etc/modules-load.d" "$ROOT/etc/sysctl.d"
	printf '%s\n' br_netfilter overlay vxlan nf_tables >"$ROOT/etc/modules-load.d/contiv.conf"
	echo net.ipv4.ip_forward=1 >"$ROOT/etc/sysctl.d/90-contiv.conf"
	if [ "$DATAPLANE" = vpp ]; then
		printf '%s\n' vhost_net tun vfio-pci >>"$ROOT/etc/modules-load.d/contiv.conf"
		echo vm.nr_hugepages=256 >>"$ROOT/etc/sysctl.d/90-contiv.conf"
	fi
	while read -r module; do modprobe "$module"; done <"$ROOT/etc/modules-load.d/contiv.conf"
	sysctl -q --system
}

install_packages() {
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q
	apt-get install -qy ca-certificates curl gnupg containerd
	repository=https://pkgs.k8s.io/core:/stable:/$KUBERNETES/deb/
	mkdir -p "$ROOT/etc/apt/keyrings" "$ROOT/etc/apt/sources.list.d"
	curl -fsSL "${repository}Release.key" -o "$ROOT/etc/apt/keyrings/kubernetes.asc"
	echo "deb [signed-by=/etc/apt/keyrings/kubernetes.asc] $repository /" >"$ROOT/etc/apt/sources.list.d/kubernetes.list"
	apt-get update -q
	apt-get install -qy kubelet kubeadm kubectl
	apt-mark hold kubelet kubeadm kubectl
}

configure_runtime() {
	mkdir -p "$ROOT/etc/containerd" "$ROOT/etc/default"
	containerd config default | sed 's/SystemdCgroup = false/SystemdCgroup = true/; s#/usr/lib/cni#/opt/cni/bin#' \
		>"$ROOT/etc/containerd/config.toml"
	systemctl restart containerd
	echo "KUBELET_EXTRA_ARGS=--node-ip=$NODE_IP" >"$ROOT/etc/default/kubelet"
	# Images that `make images` has built here are not pulled from the registry.
	for image in "$CONTIV"/bin/images/*.tar; do
		[ -e "$image" ] || continue
		ctr -n k8s.io images import "$image"
	done
}

# node_config: prints the part of contiv.conf with the NIC by which each node reaches the others: the NIC of the private network.
# The NIC with the default route reaches only the Internet, and in VirtualBox it has the same address on all machines. VPP shares
# the private NIC with the host and has its own address there.
node_config() {
	nic=$(ip -o addr show to "$NODE_IP" | awk '{print $2; exit}')
	: "${nic:?no NIC has the address $NODE_IP}"
	echo "    nodeConfig:"
	number=100
	for name in $NODE_NAMES; do
		number=$((number + 1))
		main="interfaceName: $nic"
		[ "$DATAPLANE" != vpp ] || main="interfaceName: host-$nic, ip: ${NODE_IP%.*}.$number/24"
		echo "    - {nodeName: $name, mainVPPInterface: {$main}}"
	done
}

# manifest: prints the manifest in k8s/ with this cluster's nodes. Without kube-proxy the agents need the API server's own address.
manifest() {
	node_config >"$ROOT/etc/contiv-nodes.yaml"
	sed -e "s#^\( *\)- name: CONTIV_NODE_NAME#\1- {name: CONTIV_KUBERNETES_SERVER, value: 'https://$CONTROL_PLANE_IP:6443'}\n&#" \
		-e "/^  contiv.conf: |/r $ROOT/etc/contiv-nodes.yaml" "$CONTIV/k8s/contiv-vpp.yaml"
}

start_control_plane() {
	export KUBECONFIG="$ROOT"/etc/kubernetes/admin.conf
	if [ ! -e "$KUBECONFIG" ]; then
		kubeadm init --apiserver-advertise-address="$NODE_IP" --token="$TOKEN" --token-ttl=0 \
			--service-cidr=10.96.0.0/12 --skip-phases=addon/kube-proxy
	fi
	# The label selects the dataplane of the node.
	manifest >"$ROOT/etc/contiv-vpp.yaml"
	kubectl apply -f "$ROOT/etc/contiv-vpp.yaml"
	kubectl label node --overwrite "$(hostname)" "contiv.dev/dataplane=$DATAPLANE"
}

join() {
	[ ! -e "$ROOT/etc/kubernetes/kubelet.conf" ] || return 0
	kubeadm join "$CONTROL_PLANE_IP:6443" --token="$TOKEN" --discovery-token-unsafe-skip-ca-verification
	KUBECONFIG=$ROOT/etc/kubernetes/kubelet.conf kubectl label node --overwrite "$(hostname)" "contiv.dev/dataplane=$DATAPLANE" ||
		echo "label $(hostname) from the first node: kubectl label node $(hostname) contiv.dev/dataplane=$DATAPLANE" >&2
}

prepare_kernel
install_packages
configure_runtime
if [ "$ROLE" = control-plane ]; then start_control_plane; else join; fi

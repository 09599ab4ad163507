#!/bin/bash
# build.sh [PIECE...]: build the programs and images of a cluster into $KUBELAB_CACHE; pieces that exist are skipped.
# Pieces, in order: apt k8s containerd etcd cni coredns agnhost images (the default); and, for the suites of other projects: e2e cnp.
# FORCE=1 rebuilds.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
set -euo pipefail

SRC=$KUBELAB_CACHE/src
mkdir -p "$BIN" "$CNI_BIN" "$IMAGES" "$SRC" "$KUBELAB_CACHE/stamp"

# Runs the piece unless its stamp already holds this version.
piece() { # NAME VERSION FUNCTION
  local stamp=$KUBELAB_CACHE/stamp/$1 s=$SECONDS
  if [ "${FORCE:-0}" != 1 ] && [ "$(cat "$stamp" 2>/dev/null)" = "$2" ]; then echo "$1: $2 already built"; return; fi
  echo "$1: building $2"
  "$3"
  echo "$2" > "$stamp"
  echo "$1: done in $((SECONDS - s)) s"
}

# new_module NAME MODULE@VERSION...: creates $SRC/NAME with a go.mod that requires them, and changes to this directory
new_module() {
  local name=$1; shift
  rm -rf "${SRC:?}/$name"; mkdir -p "$SRC/$name"; cd "$SRC/$name"
  go mod init "kubelab.invalid/$name" 2>/dev/null
  go get "$@" 2>&1 | { grep -v "^go: \(added\|downloading\)" || true; }
}

gobuild() { CGO_ENABLED=0 GOFLAGS=-mod=mod go build -trimpath "$@"; }

# k8s.io/kubernetes replaces its staging modules by ./staging paths, which a dependent module cannot use. So this takes upstream's
# requirements and go.sum, and replaces each staging module by its release v0.X.Y.
k8s_module() {
  local dir=$SRC/k8s up
  go mod download "k8s.io/kubernetes@$K8S_VERSION"
  up=$(go env GOMODCACHE)/k8s.io/kubernetes@$K8S_VERSION
  mkdir -p "$dir"
  {
    echo "module kubelab.invalid/k8s"; echo
    grep -E '^(go|godebug) ' "$up/go.mod"
    echo "require k8s.io/kubernetes $K8S_VERSION"
    awk '/^require \(/{p=1} p{print} /^\)/{p=0}' "$up/go.mod"
    echo "replace ("
    awk -v v="v0.${K8S_VERSION#v1.}" '/=> \.\/staging/{print "\t" $1 " => " $1 " " v}' "$up/go.mod"
    echo ")"
  } > "$dir/go.mod"
  install -m 644 "$up/go.sum" "$dir/go.sum"
  cd "$dir"
}

# k8s_ldflags: without them the binaries report the version v0.0.0-master
k8s_ldflags() {
  local x="-s -w" p minor
  minor=$(cut -d. -f2 <<<"$K8S_VERSION")
  for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    x+=" -X $p.gitVersion=$K8S_VERSION -X $p.gitMajor=1 -X $p.gitMinor=$minor -X $p.gitTreeState=clean"
    x+=" -X $p.gitCommit=gomod -X $p.buildDate=1970-01-01T00:00:00Z"
  done
  echo "$x"
}

k8s_build() { # OUTDIR PACKAGE...
  local out=$1; shift
  gobuild -ldflags "$(k8s_ldflags)" -o "$out/" "$@"
}

do_apt() {
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
    runc iproute2 iptables nftables ipset conntrack ethtool socat procps kmod openssl curl ca-certificates \
    gcc libc6-dev busybox-static dash netcat-openbsd bind9-dnsutils iperf wget
}

do_k8s() {
  k8s_module
  k8s_build "$BIN" k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kubelet,kubectl,kube-proxy}
}

do_containerd() {
  local m=github.com/containerd/containerd/v2
  new_module containerd $m@"$CONTAINERD_VERSION"
  gobuild -tags no_btrfs,no_zfs,no_devmapper,no_aufs,no_gcp \
    -ldflags "-s -w -X $m/version.Version=$CONTAINERD_VERSION" -o "$BIN/" \
    $m/cmd/containerd $m/cmd/containerd-shim-runc-v2 $m/cmd/ctr
}

do_etcd() {
  new_module etcd go.etcd.io/etcd/server/v3@"$ETCD_VERSION"
  gobuild -ldflags "-s -w" -o "$BIN/etcd" go.etcd.io/etcd/server/v3
}

do_cni() {
  local p=github.com/containernetworking/plugins/plugins
  new_module cni github.com/containernetworking/cni@"$CNI_VERSION" github.com/containernetworking/plugins@"$CNI_PLUGINS_VERSION"
  gobuild -ldflags "-s -w" -o "$BIN/" github.com/containernetworking/cni/cnitool
  gobuild -ldflags "-s -w" -o "$CNI_BIN/" $p/main/{bridge,loopback,ptp} $p/ipam/host-local $p/meta/portmap
}

do_coredns() {
  new_module coredns github.com/coredns/coredns@"$COREDNS_VERSION"
  coredns_main > main.go
  gobuild -ldflags "-s -w" -o "$BIN/coredns" .
}

# coredns_main: CoreDNS with only the plugins that the DNS of a cluster needs
coredns_main() {
  local p plugins='reload ready health prometheus errors log cache loadbalance template hosts kubernetes loop forward'
  echo 'package main'
  echo 'import ('
  echo '  "github.com/coredns/coredns/core/dnsserver"'
  echo '  "github.com/coredns/coredns/coremain"'
  for p in ${plugins/prometheus/metrics}; do echo "  _ \"github.com/coredns/coredns/plugin/$p\""; done
  echo ')'
  echo "func main() { dnsserver.Directives = []string{\"${plugins// /\", \"}\"}; coremain.Run() }"
}

do_agnhost() {
  k8s_module
  k8s_build "$BIN" k8s.io/kubernetes/test/images/agnhost
}

# gotest OUT PACKAGE: the program of a package's tests
gotest() { CGO_ENABLED=0 GOFLAGS=-mod=mod go test -c -trimpath -ldflags "${3:--s -w}" -o "$1" "$2"; }

# Kubernetes' own tests
do_e2e() {
  k8s_module
  gotest "$BIN/e2e.test" k8s.io/kubernetes/test/e2e "$(k8s_ldflags)"
}

# The conformance tests of ClusterNetworkPolicy
do_cnp() {
  local m=sigs.k8s.io/network-policy-api
  new_module cnp $m@"$CNP_VERSION"
  cnp_test > cnp_test.go
  GOFLAGS=-mod=mod go mod tidy 2>&1 | { grep -v "^go: \(found\|finding\|downloading\)" || true; }
  gotest "$BIN/cnp.test" .
}

# cnp_test: does the same as the suite's own conformance_test.go, with all features, and with timeouts for a machine under load
cnp_test() {
  cat <<'EOF'
package cnp

import (
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kubeconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	api "sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/network-policy-api/conformance/tests"
	"sigs.k8s.io/network-policy-api/conformance/utils/config"
	"sigs.k8s.io/network-policy-api/conformance/utils/suite"
)

func TestConformance(t *testing.T) {
	cfg, err := kubeconfig.GetConfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Install(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	s := suite.New(suite.Options{
		Client: c, ClientSet: set, KubeConfig: *cfg, EnableAllSupportedFeatures: true, CleanupBaseResources: true,
		TimeoutConfig: config.TimeoutConfig{
			CreateTimeout: 2 * time.Minute, DeleteTimeout: 2 * time.Minute, GetTimeout: time.Minute, NamespacesMustBeReady: 10 * time.Minute,
			PokeTimeout: 30 * time.Second,
		},
	})
	s.Setup(t)
	s.Run(t, tests.ConformanceTests)
}
EOF
}

# cpbin ROOT FILE DEST: copy a Debian binary with the libraries it needs
cpbin() {
  local r=$1 f l; f=$(readlink -f "$2")
  mkdir -p "$r$(dirname "$3")"; rm -f "$r$3"; cp "$f" "$r$3"
  ldd "$f" 2>/dev/null | awk '/=> \//{print $3} /^\t\/lib/{print $1}' | while read -r l; do
    mkdir -p "$r$(dirname "$l")"; cp -Ln "$l" "$r$l"
  done
}

# bb_root ROOT APPLET...: busybox with links for all its applets except the named ones
bb_root() {
  local r=$1 a; shift
  mkdir -p "$r"/{bin,etc,root,tmp}; chmod 1777 "$r/tmp"
  cp "$(command -v busybox)" "$r/bin/busybox"
  for a in $("$r/bin/busybox" --list); do
    case " busybox $* " in *" $a "*) ;; *) ln -sf busybox "$r/bin/$a" ;; esac
  done
}

# Nothing is pulled from a registry: each image is packed here under the name that manifests use.
do_images() {
  local t r up lib l
  go mod download "k8s.io/kubernetes@$K8S_VERSION"
  up=$(go env GOMODCACHE)/k8s.io/kubernetes@$K8S_VERSION
  (cd "$KUBELAB_DIR" && CGO_ENABLED=0 go build -o "$BIN/mkimage" ./mkimage)
  t=$(mktemp -d)

  mkdir -p "$t/pause"
  gcc -Os -static -DVERSION="$PAUSE_TAG" -o "$t/pause/pause" "$up/build/pause/linux/pause.c"
  "$BIN/mkimage" -root "$t/pause" -tag "registry.k8s.io/pause:$PAUSE_TAG,registry.k8s.io/pause:$E2E_PAUSE_TAG" -entrypoint /pause \
    -user 65535:65535 -o "$IMAGES/pause.tar"

  bb_root "$t/busybox"
  echo 'root:x:0:0:root:/root:/bin/sh' > "$t/busybox/etc/passwd"
  "$BIN/mkimage" -root "$t/busybox" -cmd sh -o "$IMAGES/busybox.tar" \
    -tag "registry.k8s.io/e2e-test-images/busybox:$BUSYBOX_TAG,docker.io/library/busybox:latest"

  mkdir -p "$t/coredns"; cp "$BIN/coredns" "$t/coredns/"
  "$BIN/mkimage" -root "$t/coredns" -tag "registry.k8s.io/coredns/coredns:$COREDNS_VERSION" -entrypoint /coredns \
    -o "$IMAGES/coredns.tar"

  # agnhost and the shell tools that tests exec in it. Debian's static busybox runs its own applets before
  # $PATH (nc), and its wget crashes on names: dash, GNU wget and openbsd nc take their places.
  r=$t/agnhost
  bb_root "$r" sh ash ip nc wget getent dpkg dpkg-deb init linuxrc
  mkdir -p "$r"/{usr/local/bin,uploads,dev,proc,sys,run,var}; ln -s /run "$r/var/run"
  cpbin "$r" /bin/dash /bin/sh; cpbin "$r" /bin/bash /bin/bash
  for l in curl dig ss getent wget iperf; do cpbin "$r" "$(command -v $l)" /usr/bin/$l; done
  cpbin "$r" "$(command -v nc.openbsd)" /usr/bin/nc
  cpbin "$r" "$(command -v ip)" /usr/sbin/ip; mkdir -p "$r/sbin"; ln -s /usr/sbin/ip "$r/sbin/ip"
  ln -s /usr/bin/iperf "$r/usr/local/bin/iperf"
  lib=/lib/$(gcc -dumpmachine); mkdir -p "$r$lib"
  for l in libnss_dns.so.2 libnss_files.so.2 libresolv.so.2; do cp -L "$lib/$l" "$r$lib/"; done
  printf '%s\n' 'root:x:0:0:root:/root:/bin/sh' 'nobody:x:65534:65534:nobody:/:/bin/false' > "$r/etc/passwd"
  printf '%s\n' 'root:x:0:' 'nogroup:x:65534:' > "$r/etc/group"
  echo 'hosts: files dns' > "$r/etc/nsswitch.conf"
  install -m 644 "$up"/test/images/agnhost/porter/localhost.{crt,key} "$r/"
  cp "$BIN/agnhost" "$r/agnhost.real"
  (cd "$KUBELAB_DIR" && CGO_ENABLED=0 go build -ldflags "-s -w" -o "$r/agnhost" ./rawsctp) # speaks SCTP if the kernel does not support it
  up=registry.k8s.io/e2e-test-images/agnhost
  "$BIN/mkimage" -root "$r" -tag "$up:$AGNHOST_TAG,$up:$CNP_AGNHOST_TAG,${up%/*}/glibc-dns-testing:$GLIBC_DNS_TAG" \
    -entrypoint /agnhost -cmd pause -expose 80/tcp,8080/tcp,8081/tcp,9376/tcp,5000/tcp -o "$IMAGES/agnhost.tar"
  rm -rf "$t"
}

[ $# -gt 0 ] || set -- apt k8s containerd etcd cni coredns agnhost images
for p; do
  case $p in
    apt) piece apt 1 do_apt ;;
    k8s) piece k8s "$K8S_VERSION" do_k8s ;;
    containerd) piece containerd "$CONTAINERD_VERSION" do_containerd ;;
    etcd) piece etcd "$ETCD_VERSION" do_etcd ;;
    cni) piece cni "$CNI_VERSION $CNI_PLUGINS_VERSION" do_cni ;;
    coredns) piece coredns "$COREDNS_VERSION" do_coredns ;;
    agnhost) piece agnhost "$K8S_VERSION" do_agnhost ;;
    images) piece images "$PAUSE_TAG $E2E_PAUSE_TAG $AGNHOST_TAG $CNP_AGNHOST_TAG $GLIBC_DNS_TAG $BUSYBOX_TAG $COREDNS_VERSION rawsctp" do_images ;;
    e2e) piece e2e "$K8S_VERSION" do_e2e ;;
    cnp) piece cnp "$CNP_VERSION" do_cnp ;;
    *) die "unknown piece $p" ;;
  esac
done

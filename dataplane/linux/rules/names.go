package rules

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// felixChainPrefix is the prefix of Felix's chain names. It is the default of Config.ChainPrefix.
const felixChainPrefix = "cali-"

// maxChainPrefix is the longest prefix that leaves room for the longest of the names below.
const maxChainPrefix = maxChainName - len("forward-endpoint-mark")

// Own returns the name of a chain of Felix with the configuration's prefix instead of Felix's. It also works for the beginning of a name.
func (c Config) Own(felix string) string {
	return cmp.Or(c.ChainPrefix, felixChainPrefix) + strings.TrimPrefix(felix, felixChainPrefix)
}

// The fixed chain names, as in Felix; Config.Own returns the names that are programmed. A name may occur in several layers.
const (
	chainInput       = "cali-INPUT"
	chainForward     = "cali-FORWARD"
	chainOutput      = "cali-OUTPUT"
	chainPrerouting  = "cali-PREROUTING"
	chainPostrouting = "cali-POSTROUTING"

	chainFailsafeIn  = "cali-failsafe-in"
	chainFailsafeOut = "cali-failsafe-out"

	chainNATOutgoing = "cali-nat-outgoing"
	chainFIPDnat     = "cali-fip-dnat"
	chainFIPSnat     = "cali-fip-snat"

	chainReversePath          = "cali-rpf"
	chainWorkloadToHost       = "cali-wl-to-host"
	chainFromWorkloadDispatch = "cali-from-wl-dispatch"
	chainToWorkloadDispatch   = "cali-to-wl-dispatch"
	// Not in Felix; used with Config.SharePolicies.
	ChainFromWorkloadPolicies = "cali-from-wl-policies"
	ChainToWorkloadPolicies   = "cali-to-wl-policies"
	chainNodeToWorkload       = "cali-node-to-wl" // not in Felix
	chainNodeCut              = "cali-node-cut"   // not in Felix

	chainDispatchToHostEndpoint          = "cali-to-host-endpoint"
	chainDispatchFromHostEndpoint        = "cali-from-host-endpoint"
	chainDispatchToHostEndpointForward   = "cali-to-hep-forward"
	chainDispatchFromHostEndpointForward = "cali-from-hep-forward"

	chainDispatchSetEndpointMark  = "cali-set-endpoint-mark"
	chainDispatchFromEndpointMark = "cali-from-endpoint-mark"
	chainForwardCheck             = "cali-forward-check"
	chainForwardEndpointMark      = "cali-forward-endpoint-mark"
)

// The prefixes of the chains of one policy, profile or interface, as in Felix.
const (
	PolicyInboundPfx   = "cali-pi-"
	PolicyOutboundPfx  = "cali-po-"
	ProfileInboundPfx  = "cali-pri-"
	ProfileOutboundPfx = "cali-pro-"

	WorkloadToEndpointPfx   = "cali-tw-"
	WorkloadFromEndpointPfx = "cali-fw-"
	SetEndpointMarkPfx      = "cali-sm-"
	sharedToPfx             = "cali-ts-" // not in Felix; used with Config.SharePolicies
	sharedFromPfx           = "cali-fs-" // not in Felix

	HostToEndpointPfx          = "cali-th-"
	HostFromEndpointPfx        = "cali-fh-"
	HostToEndpointForwardPfx   = "cali-thfw-"
	HostFromEndpointForwardPfx = "cali-fhfw-"
)

// The IDs of the sets that the driver itself maintains.
const (
	SetAllPools   = "all-ipam-pools"  // prefixes of all pools
	SetMasqPools  = "masq-ipam-pools" // prefixes of the pools that masquerade
	SetAllHosts   = "all-hosts-net"   // addresses of all nodes, and prefixes of nodes outside the cluster
	SetThisHost   = "this-host"       // addresses of this node
	SetVXLANPeers = "all-vxlan-net"   // source addresses of other nodes' VXLAN packets
)

// AllInterfaces is the name of a host endpoint that applies to every interface of the node.
const AllInterfaces = "*"

// allInterfacesSuffix replaces the interface name in the chain of the endpoint for all interfaces. It is longer than any interface name, so
// it never collides with one.
const allInterfacesSuffix = "any-interface-at-all"

// maxChainName is iptables' limit (XT_EXTENSION_MAXNAMELEN less the terminator).
const maxChainName = 28

// ChainName returns prefix followed by name, if the result is short and name consists of letters, digits and ". _ - /" only. Otherwise it
// returns prefix followed by "_" and a hash of name. Different names give different chains unless 100 bits of the hash collide.
func ChainName(prefix, name string) string {
	if len(prefix)+len(name) <= maxChainName && !strings.HasPrefix(name, "_") && plain(name) {
		return prefix + name
	}
	sum := sha256.Sum256([]byte(name))
	return prefix + "_" + base64.RawURLEncoding.EncodeToString(sum[:])[:maxChainName-1-len(prefix)]
}

func plain(name string) bool {
	for _, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '.' && c != '_' && c != '-' && c != '/' {
			return false
		}
	}
	return name != ""
}

// IfaceChain returns the name of the chain with this prefix for an interface, or for AllInterfaces.
func IfaceChain(prefix, iface string) string {
	if iface == AllInterfaces {
		iface = allInterfacesSuffix
	}
	return ChainName(prefix, iface)
}

// LayerChains holds chains and dispatch chains of one layer.
type LayerChains struct {
	Layer      table.Layer
	Chains     []table.Chain
	Dispatches []table.Dispatch
}

package rules

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// felixChainPrefix begins the names of Felix's chains. It is the default of Config.ChainPrefix.
const felixChainPrefix = "cali-"

// maxChainPrefix is what leaves room for the longest of the names below.
const maxChainPrefix = maxChainName - len("forward-endpoint-mark")

// Own is what a chain with one of Felix's names, or with a name that begins like Felix's, is called with the configuration's prefix.
func (c Config) Own(felix string) string {
	return cmp.Or(c.ChainPrefix, felixChainPrefix) + strings.TrimPrefix(felix, felixChainPrefix)
}

// The chains whose names do not depend on what they are for, by Felix's names: Config.Own has those that are programmed. A name may
// occur in several layers.
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
	// Ours, with Config.SharePolicies.
	ChainFromWorkloadPolicies = "cali-from-wl-policies"
	ChainToWorkloadPolicies   = "cali-to-wl-policies"
	chainNodeToWorkload       = "cali-node-to-wl" // ours
	chainNodeCut              = "cali-node-cut"   // ours

	chainDispatchToHostEndpoint          = "cali-to-host-endpoint"
	chainDispatchFromHostEndpoint        = "cali-from-host-endpoint"
	chainDispatchToHostEndpointForward   = "cali-to-hep-forward"
	chainDispatchFromHostEndpointForward = "cali-from-hep-forward"

	chainDispatchSetEndpointMark  = "cali-set-endpoint-mark"
	chainDispatchFromEndpointMark = "cali-from-endpoint-mark"
	chainForwardCheck             = "cali-forward-check"
	chainForwardEndpointMark      = "cali-forward-endpoint-mark"
)

// The beginnings of the chains of one policy, profile or interface, by Felix's names.
const (
	PolicyInboundPfx   = "cali-pi-"
	PolicyOutboundPfx  = "cali-po-"
	ProfileInboundPfx  = "cali-pri-"
	ProfileOutboundPfx = "cali-pro-"

	WorkloadToEndpointPfx   = "cali-tw-"
	WorkloadFromEndpointPfx = "cali-fw-"
	SetEndpointMarkPfx      = "cali-sm-"
	sharedToPfx             = "cali-ts-" // ours, of Config.SharePolicies
	sharedFromPfx           = "cali-fs-" // ours

	HostToEndpointPfx          = "cali-th-"
	HostFromEndpointPfx        = "cali-fh-"
	HostToEndpointForwardPfx   = "cali-thfw-"
	HostFromEndpointForwardPfx = "cali-fhfw-"
)

// The IDs of the sets that the driver itself fills.
const (
	SetAllPools   = "all-ipam-pools"  // nets of all pools
	SetMasqPools  = "masq-ipam-pools" // nets of the pools that masquerade
	SetAllHosts   = "all-hosts-net"   // addresses of all nodes, and nets of nodes outside of the cluster
	SetThisHost   = "this-host"       // addresses of this node
	SetVXLANPeers = "all-vxlan-net"   // addresses that other nodes' VXLAN packets come from
)

// AllInterfaces is the name of a host endpoint that stands for every interface of the node.
const AllInterfaces = "*"

// allInterfacesSuffix takes the place of an interface's name in the chain of the endpoint for all of them; longer than any interface's
// name, so it is no other program's.
const allInterfacesSuffix = "any-interface-at-all"

// maxChainName is iptables' limit (XT_EXTENSION_MAXNAMELEN less the terminator).
const maxChainName = 28

// ChainName is prefix followed by what name stands for: name itself if the whole is short and made of letters, digits and
// ". _ - /" only, else "_" and a hash of it. Different names never give equal chains, short of a collision of 100 bits.
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

// IfaceChain is the chain of prefix for an interface, or for AllInterfaces.
func IfaceChain(prefix, iface string) string {
	if iface == AllInterfaces {
		iface = allInterfacesSuffix
	}
	return ChainName(prefix, iface)
}

// LayerChains are chains and dispatch chains of one layer.
type LayerChains struct {
	Layer      table.Layer
	Chains     []table.Chain
	Dispatches []table.Dispatch
}

package preflight

import (
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/windows/hcn"
)

// WindowsFacts holds what has been read about a Windows node.
type WindowsFacts struct {
	Build    uint32 // of Windows
	HNS      error  // why the Host Network Service cannot be used
	Features hcn.Features
	Uplink   string // the adapter with the default route
	// Conflists holds the names of the runtime's CNI configurations; Conflist is the name of ours.
	Conflists []string
	Conflist  string
	// Overlay: contiv.conf connects nodes by VXLAN, with this VNI. IPv4, IPv6: pods have such addresses.
	Overlay    bool
	VNI        uint32
	IPv4, IPv6 bool
}

// server2019 is the first build that has AF_UNIX sockets and version 2 of HNS.
const server2019 = 17763

// The range of VNIs that Windows accepts.
const minVNI, maxVNI = 4096, 65535

// CheckWindows returns what a Windows node lacks.
func CheckWindows(f WindowsFacts) (found []Finding) {
	lacks := func(subject, fix, problem string, args ...any) {
		found = append(found, Finding{true, subject, fmt.Sprintf(problem, args...), fix})
	}
	if f.Build < server2019 {
		lacks("kernel", "use Windows Server 2019 or later", "build %d of Windows is older than %d", f.Build, server2019)
	}
	if f.HNS != nil {
		lacks("HNS", "install the feature Containers, and check that the service hns runs; restart it if it does not respond", "the Host Network Service cannot be used: %v", f.HNS)
	} else {
		if f.Overlay && !f.Features.RemoteSubnet {
			lacks("HNS", "update Windows, or set nodeToNodeTransport to nooverlay on all nodes", "this Windows has no overlay networks")
		}
		if f.IPv6 && !f.Features.IPv6DualStack {
			lacks("HNS", "use Windows Server 2022 or later, or give pods IPv4 addresses only", "this Windows has no networks with both families")
		}
	}
	if f.IPv6 && f.Overlay {
		lacks("contiv.conf", "set nodeToNodeTransport to nooverlay, or remove the IPv6 network from podSubnetCIDR, on all nodes",
			"pods have IPv6 addresses, and Windows has no IPv6 in overlay networks")
	}
	if f.IPv6 && !f.IPv4 {
		lacks("contiv.conf", "add an IPv4 network to podSubnetCIDR on all nodes", "pods have IPv6 addresses only, and Windows has no such networks")
	}
	if f.Uplink == "" {
		lacks("NIC", "give an adapter a default gateway", "no adapter has a default route, and HNS makes the pods' network on that one")
	}
	if f.Overlay && (f.VNI < minVNI || f.VNI > maxVNI) {
		lacks("contiv.conf", "set vxlanVNI on all nodes, for example to 4096", "vxlanVNI is %d: Windows takes %d to %d", f.VNI, minVNI, maxVNI)
	}
	for _, name := range slices.Sorted(slices.Values(f.Conflists)) {
		if name < f.Conflist && !strings.HasPrefix(name, ".") {
			found = append(found, Finding{false, "CNI", fmt.Sprintf("%s comes before %s: pods go to another network plugin", name, f.Conflist),
				"remove it once the other network plugin is gone"})
		}
	}
	return found
}

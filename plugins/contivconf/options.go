package contivconf

import (
	"math"
	"math/bits"
	"slices"
	"strings"
)

// The defaults of contiv.conf that are not networks.
const (
	defaultMTU             = 1450
	defaultTAPRxRingSize   = 256
	defaultTAPTxRingSize   = 1024 // VPP may stand still for some 100 ms, and sends all packets of this time in one burst
	defaultVmxnet3RingSize = 1024
	defaultSTNSocket       = "/var/run/contiv/stn.sock"

	minMTU     = 576
	minMTUIPv6 = 1280
	maxMTU     = 9216
	maxTAPRing = 32768
)

// or returns the option's value, or def if it is not set.
func or[T any](option *T, def T) T {
	if option == nil {
		return def
	}
	return *option
}

// orNonZero is like or, for options for which zero means the default in contiv.
func orNonZero[T comparable](option *T, def T) T {
	var zero T
	if option == nil || *option == zero {
		return def
	}
	return *option
}

func interfaceConfig(o InterfaceOptions, env Env, bad *faults) InterfaceConfig {
	c := InterfaceConfig{
		MTUSize:             orNonZero(o.MTUSize, defaultMTU),
		MTUIsDefault:        o.MTUSize == nil || *o.MTUSize == 0,
		TAPInterfaceVersion: orNonZero(o.TAPInterfaceVersion, 2),
		TAPv2RxRingSize:     orNonZero(o.TAPv2RxRingSize, defaultTAPRxRingSize),
		TAPv2TxRingSize:     orNonZero(o.TAPv2TxRingSize, defaultTAPTxRingSize),
		Vmxnet3RxRingSize:   orNonZero(o.Vmxnet3RxRingSize, defaultVmxnet3RingSize),
		Vmxnet3TxRingSize:   orNonZero(o.Vmxnet3TxRingSize, defaultVmxnet3RingSize),
		InterfaceRxMode:     RxMode(orNonZero(o.InterfaceRxMode, string(RxModeDefault))),
	}
	if o.UseTAPInterfaces != nil {
		c.UseTAPInterfaces = *o.UseTAPInterfaces
	} else if env.HasVhostNet != nil {
		c.UseTAPInterfaces = env.HasVhostNet()
	}
	offloads(&c, o)
	if c.MTUSize < minMTU || c.MTUSize > maxMTU {
		bad.add("mtuSize", "%d is out of range; use %d to %d, and leave 50 bytes for VXLAN", c.MTUSize, minMTU, maxMTU)
	}
	switch c.TAPInterfaceVersion {
	case 2:
	case 1:
		bad.add("tapInterfaceVersion", "version 1 does not exist in VPP any more; remove the option or use 2")
	default:
		bad.add("tapInterfaceVersion", "there is no version %d; use 2", c.TAPInterfaceVersion)
	}
	checkRing(bad, "tapv2RxRingSize", c.TAPv2RxRingSize)
	checkRing(bad, "tapv2TxRingSize", c.TAPv2TxRingSize)
	if c.Vmxnet3RxRingSize != defaultVmxnet3RingSize {
		bad.unsupported("vmxnet3RxRingSize", "the vmxnet3 driver", "remove the option")
	}
	if c.Vmxnet3TxRingSize != defaultVmxnet3RingSize {
		bad.unsupported("vmxnet3TxRingSize", "the vmxnet3 driver", "remove the option")
	}
	switch c.InterfaceRxMode {
	case RxModeDefault, RxModePolling, RxModeInterrupt, RxModeAdaptive:
	default:
		bad.add("interfaceRxMode", "there is no mode %q; use default, polling, interrupt or adaptive", c.InterfaceRxMode)
	}
	return c
}

// offloads sets both offloads together: a kernel that computes the checksums cannot leave the segmentation to a device.
func offloads(c *InterfaceConfig, o InterfaceOptions) {
	c.EnableGSO = or(o.EnableGSO, c.UseTAPInterfaces && !or(o.TCPChecksumOffloadDisabled, false))
	c.TCPChecksumOffloadDisabled = or(o.TCPChecksumOffloadDisabled, !c.EnableGSO)
	c.ChecksumsAreDefault = o.TCPChecksumOffloadDisabled == nil
	c.GSOIsDefault = o.EnableGSO == nil && or(o.TCPChecksumOffloadDisabled, true)
}

func checkRing(bad *faults, field string, size uint16) {
	if bits.OnesCount16(size) != 1 || size > maxTAPRing {
		bad.add(field, "%d is not a size of a ring; use a power of two up to %d", size, maxTAPRing)
	}
}

// RFC 7348, section 5: 24 bits.
const (
	defaultVxlanVNI = 10
	maxVxlanVNI     = 1<<24 - 1
)

func routingConfig(o RoutingOptions, bad *faults) RoutingConfig {
	c := RoutingConfig{
		MainVRFID:             or(o.MainVRFID, 0),
		PodVRFID:              or(o.PodVRFID, 1),
		NodeToNodeTransport:   Transport(orNonZero(o.NodeToNodeTransport, string(TransportVXLAN))),
		VxlanVNI:              orNonZero(o.VxlanVNI, defaultVxlanVNI),
		RouteServiceCIDRToVPP: or(o.RouteServiceCIDRToVPP, false),
	}
	if c.MainVRFID == c.PodVRFID {
		bad.add("podVRFID", "is %d, the same as mainVRFID; give the two VRFs different IDs", c.PodVRFID)
	}
	if c.VxlanVNI > maxVxlanVNI {
		bad.add("vxlanVNI", "%d has more than 24 bits; use 1 to %d", c.VxlanVNI, maxVxlanVNI)
	}
	// VPP uses the highest number for "no table".
	if c.MainVRFID == math.MaxUint32 {
		bad.add("mainVRFID", "%d is reserved by VPP; use a lower number", c.MainVRFID)
	}
	if c.PodVRFID == math.MaxUint32 {
		bad.add("podVRFID", "%d is reserved by VPP; use a lower number", c.PodVRFID)
	}
	switch use := "use " + strings.Join(Transports(), " or "); {
	case slices.Contains(Transports(), string(c.NodeToNodeTransport)):
	case c.NodeToNodeTransport == TransportSRv6:
		bad.unsupported("nodeToNodeTransport", "srv6", use)
	default:
		bad.add("nodeToNodeTransport", "there is no transport %q; %s", c.NodeToNodeTransport, use)
	}
	for _, flag := range []struct {
		field string
		set   *bool
	}{
		{"useSRv6ForServices", o.UseSRv6ForServices},
		{"useSRv6ForServiceFunctionChaining", o.UseSRv6ForServiceFunctionChaining},
		{"useDX6ForSrv6NodetoNodeTransport", o.UseDX6ForSrv6NodetoNodeTransport},
	} {
		if or(flag.set, false) {
			bad.unsupported(flag.field, "SRv6", "remove the option or set it to false")
		}
	}
	return c
}

func neighborScanConfig(o NeighborScanOptions, bad *faults) NeighborScanConfig {
	c := NeighborScanConfig{
		ScanIPNeighbors:          or(o.ScanIPNeighbors, true),
		IPNeighborScanInterval:   orNonZero(o.IPNeighborScanInterval, 1),
		IPNeighborStaleThreshold: orNonZero(o.IPNeighborStaleThreshold, 4),
	}
	if c.ScanIPNeighbors && c.IPNeighborStaleThreshold < c.IPNeighborScanInterval {
		bad.add("ipNeighborStaleThreshold", "%d min is shorter than ipNeighborScanInterval (%d min), so that neighbours would go "+
			"stale between two scans; make it at least as long", c.IPNeighborStaleThreshold, c.IPNeighborScanInterval)
	}
	return c
}

// checkUnsupported rejects options of contiv that are not supported yet, except for those that are set to their default.
func checkUnsupported(f File, bad *faults) {
	const noSTN = "give VPP an interface of its own and remove the option"
	if or(f.StealFirstNIC, false) {
		bad.unsupported("stealFirstNIC", "stealing the NIC (STN)", noSTN)
	}
	if or(f.StealInterface, "") != "" {
		bad.unsupported("stealInterface", "stealing the NIC (STN)", noSTN)
	}
	if v := or(f.StnSocketFile, ""); v != "" && v != defaultSTNSocket {
		bad.unsupported("stnSocketFile", "stealing the NIC (STN)", "remove the option")
	}
	if v := or(f.StnVersion, 0); v != 0 && v != 2 {
		bad.unsupported("stnVersion", "stealing the NIC (STN)", "remove the option")
	}
	if !or(f.CrdNodeConfigurationDisabled, true) {
		bad.unsupported("crdNodeConfigurationDisabled", "configuration of nodes by NodeConfig resources",
			"remove the option and use nodeConfig in this file")
	}
	if or(f.IPAMConfig.UseExternalIPAM, false) {
		bad.unsupported("ipamConfig.useExternalIPAM", "external IPAM", "remove the option or set it to false")
	}
	checkSRv6(f.IPAMConfig.SRv6, bad)
}

func checkSRv6(o *SRv6Options, bad *faults) {
	if o == nil {
		return
	}
	for _, s := range []struct {
		name     string
		value    *string
		standard string
	}{
		{"servicePolicyBSIDSubnetCIDR", o.ServicePolicyBSIDSubnetCIDR, "8fff::/16"},
		{"servicePodLocalSIDSubnetCIDR", o.ServicePodLocalSIDSubnetCIDR, "9300::/16"},
		{"serviceHostLocalSIDSubnetCIDR", o.ServiceHostLocalSIDSubnetCIDR, "9300::/16"},
		{"serviceNodeLocalSIDSubnetCIDR", o.ServiceNodeLocalSIDSubnetCIDR, "9000::/16"},
		{"nodeToNodePodLocalSIDSubnetCIDR", o.NodeToNodePodLocalSIDSubnetCIDR, "9501::/16"},
		{"nodeToNodeHostLocalSIDSubnetCIDR", o.NodeToNodeHostLocalSIDSubnetCIDR, "9500::/16"},
		{"nodeToNodePodPolicySIDSubnetCIDR", o.NodeToNodePodPolicySIDSubnetCIDR, "8501::/16"},
		{"nodeToNodeHostPolicySIDSubnetCIDR", o.NodeToNodeHostPolicySIDSubnetCIDR, "8500::/16"},
		{"sfcPolicyBSIDSubnetCIDR", o.SfcPolicyBSIDSubnetCIDR, "8eee::/16"},
		{"sfcServiceFunctionSIDSubnetCIDR", o.SfcServiceFunctionSIDSubnetCIDR, "9600::/16"},
		{"sfcEndLocalSIDSubnetCIDR", o.SfcEndLocalSIDSubnetCIDR, "9310::/16"},
	} {
		if v := or(s.value, ""); v != "" && v != s.standard {
			bad.unsupported("ipamConfig.srv6."+s.name, "SRv6", "remove the section srv6")
		}
	}
	if v := or(o.SfcIDLengthUsedInSidForServiceFunction, 0); v != 0 && v != 16 {
		bad.unsupported("ipamConfig.srv6.sfcIDLengthUsedInSidForServiceFunction", "SRv6", "remove the section srv6")
	}
}

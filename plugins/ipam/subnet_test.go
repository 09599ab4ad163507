package ipam

import (
	"math/big"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/plugins/contivconf"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }
func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }

func v4Defaults() subnets {
	return subnets{conf: contivconf.FamilyIPAM{
		Version:       contivconf.IPv4,
		PodSubnetCIDR: prefix("10.1.0.0/16"), PodSubnetOneNodePrefixLen: 24,
		VPPHostSubnetCIDR: prefix("172.30.0.0/16"), VPPHostSubnetOneNodePrefixLen: 24,
		NodeInterconnectCIDR: prefix("192.168.16.0/24"), VxlanCIDR: prefix("192.168.30.0/24"),
	}}
}

func v6Conf() subnets {
	return subnets{conf: contivconf.FamilyIPAM{
		Version:       contivconf.IPv6,
		PodSubnetCIDR: prefix("fd10:1::/48"), PodSubnetOneNodePrefixLen: 64,
		VPPHostSubnetCIDR: prefix("fd00:172:30::/48"), VPPHostSubnetOneNodePrefixLen: 64,
		NodeInterconnectCIDR: prefix("fd00:192:168:16::/112"), VxlanCIDR: prefix("fd00:192:168:30::/112"),
	}}
}

// split returns the family of contivCIDR 10.128.0.0/14.
func split() subnets {
	return subnets{conf: contivconf.FamilyIPAM{
		Version:       contivconf.IPv4,
		PodSubnetCIDR: prefix("10.128.0.0/16"), PodSubnetOneNodePrefixLen: 25,
		VPPHostSubnetCIDR: prefix("10.129.0.0/16"), VPPHostSubnetOneNodePrefixLen: 25,
		NodeInterconnectCIDR: prefix("10.130.0.0/23"), VxlanCIDR: prefix("10.130.2.0/23"),
	}}
}

// TestHandComputed checks values that were computed by hand from contiv's formulas.
func TestHandComputed(t *testing.T) {
	for _, tc := range []struct {
		name                          string
		s                             subnets
		id                            uint32
		pods, gw, nat                 string
		link, vpp, linux, node, vxlan string
	}{
		{"IPv4 first", v4Defaults(), 1, "10.1.1.0/24", "10.1.1.1", "10.1.1.254",
			"172.30.1.0/24", "172.30.1.1/24", "172.30.1.2/24", "192.168.16.1/24", "192.168.30.1/24"},
		{"IPv4 last with all addresses", v4Defaults(), 254, "10.1.254.0/24", "10.1.254.1", "10.1.254.254",
			"172.30.254.0/24", "172.30.254.1/24", "172.30.254.2/24", "192.168.16.254/24", "192.168.30.254/24"},
		{"IPv4 wraps", v4Defaults(), 256, "10.1.0.0/24", "10.1.0.1", "10.1.0.254",
			"172.30.0.0/24", "172.30.0.1/24", "172.30.0.2/24", "", ""},
		{"contivCIDR", split(), 3, "10.128.1.128/25", "10.128.1.129", "10.128.1.254",
			"10.129.1.128/25", "10.129.1.129/25", "10.129.1.130/25", "10.130.0.3/23", "10.130.2.3/23"},
		{"contivCIDR wraps", split(), 512, "10.128.0.0/25", "10.128.0.1", "10.128.0.126",
			"10.129.0.0/25", "10.129.0.1/25", "10.129.0.2/25", "", ""},
		{"contivCIDR beyond 255", split(), 300, "10.128.150.0/25", "10.128.150.1", "10.128.150.126",
			"10.129.150.0/25", "10.129.150.1/25", "10.129.150.2/25", "10.130.1.44/23", "10.130.3.44/23"},
		{"IPv6", v6Conf(), 0x1a2, "fd10:1:0:1a2::/64", "fd10:1:0:1a2::1", "fd10:1:0:1a2:ffff:ffff:ffff:fffe",
			"fd00:172:30:1a2::/64", "fd00:172:30:1a2::1/64", "fd00:172:30:1a2::2/64",
			"fd00:192:168:16::1a2/112", "fd00:192:168:30::1a2/112"},
		{"IPv6 wraps", v6Conf(), 65536, "fd10:1::/64", "fd10:1::1", "fd10:1::ffff:ffff:ffff:fffe",
			"fd00:172:30::/64", "fd00:172:30::1/64", "fd00:172:30::2/64", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pods, err := tc.s.podSubnet(tc.id)
			if want := (PodSubnet{prefix(tc.pods), addr(tc.gw), addr(tc.nat)}); err != nil || pods != want {
				t.Errorf("podSubnet = %v, %v, want %v", pods, err, want)
			}
			link, err := tc.s.hostLink(tc.id)
			if want := (HostLink{prefix(tc.link), prefix(tc.vpp), prefix(tc.linux)}); err != nil || link != want {
				t.Errorf("hostLink = %v, %v, want %v", link, err, want)
			}
			checkPrefix(t, "nodeIP", tc.node)(tc.s.nodeIP(tc.id))
			checkPrefix(t, "vxlanIP", tc.vxlan)(tc.s.vxlanIP(tc.id))
			if id, ok := tc.s.nodeIDOf(pods.NATLoopback); !ok || id != tc.id {
				t.Errorf("nodeIDOf(%s) = %d, %v", pods.NATLoopback, id, ok)
			}
		})
	}
}

func checkPrefix(t *testing.T, what, want string) func(netip.Prefix, error) {
	return func(got netip.Prefix, err error) {
		t.Helper()
		switch {
		case want == "" && err == nil:
			t.Errorf("%s = %s, want an error", what, got)
		case want != "" && (err != nil || got != prefix(want)):
			t.Errorf("%s = %s, %v, want %s", what, got, err, want)
		}
	}
}

func TestExcludedNodeIPs(t *testing.T) {
	for _, tc := range []struct {
		id       uint32
		excluded []string
		want     string
	}{
		{1, []string{"192.168.16.100"}, "192.168.16.1/24"},
		{99, []string{"192.168.16.100"}, "192.168.16.99/24"},
		{100, []string{"192.168.16.100"}, "192.168.16.101/24"},
		{101, []string{"192.168.16.100"}, "192.168.16.102/24"},
		{1, []string{"192.168.16.1"}, "192.168.16.2/24"},
		{1, []string{"192.168.16.2", "192.168.16.1"}, "192.168.16.3/24"}, // 1 is excluded and moves to 2, which is excluded and moves to 3
		{1, []string{"192.168.16.1", "192.168.16.1"}, "192.168.16.2/24"},
		{1, []string{"10.0.0.1", "fd00::1"}, "192.168.16.1/24"},
		{253, []string{"192.168.16.100"}, "192.168.16.254/24"},
		{254, []string{"192.168.16.100"}, ""},
	} {
		var ex []netip.Addr
		for _, e := range tc.excluded {
			ex = append(ex, addr(e))
		}
		checkPrefix(t, strings.Join(tc.excluded, ","), tc.want)(v4Defaults().nodeIP(tc.id, ex...))
	}
}

// TestErrorsNameTheOption checks that the error for a node ID without a slice names the option that is too small.
func TestErrorsNameTheOption(t *testing.T) {
	s := v4Defaults()
	_, pods := s.podSubnet(257)
	_, link := s.hostLink(257)
	_, node := s.nodeIP(255)
	_, vxlan := s.vxlanIP(255)
	_, zero := s.podSubnet(0)
	for want, err := range map[string]error{
		"ipamConfig.podSubnetOneNodePrefixLen: podSubnetCIDR 10.1.0.0/16 has 256 slices of length 24, too few for node ID 257": pods,
		"ipamConfig.vppHostSubnetOneNodePrefixLen: ":                                    link,
		"ipamConfig.nodeInterconnectCIDR: 192.168.16.0/24 is too small for node ID 255": node,
		"ipamConfig.vxlanCIDR: 192.168.30.0/24 is too small":                            vxlan,
		"node ID 0 is not allocated":                                                    zero,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestNodeIDOfForeignAddresses(t *testing.T) {
	s := v4Defaults()
	for _, a := range []string{"10.2.0.1", "10.0.255.255", "fd10:1::1", "192.168.16.1"} {
		if id, ok := s.nodeIDOf(addr(a)); ok {
			t.Errorf("nodeIDOf(%s) = %d", a, id)
		}
	}
	wide := v6Conf()
	wide.conf.PodSubnetCIDR = prefix("fd10::/16") // 48 bits of slices, more than there are node IDs
	if id, ok := wide.nodeIDOf(addr("fd10:1:2:3::1")); ok {
		t.Errorf("nodeIDOf = %d for a slice without a node ID", id)
	}
	if id, ok := wide.nodeIDOf(addr("fd10::1")); ok {
		t.Errorf("nodeIDOf = %d for slice 0", id)
	}
	if id, ok := wide.nodeIDOf(addr("fd10:0:2:3::1")); !ok || id != 0x20003 {
		t.Errorf("nodeIDOf = %x, %v", id, ok)
	}
}

// TestSliceAgainstBigInt compares the arithmetic with that of math/big, for random networks of both families.
func TestSliceAgainstBigInt(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		size := 32
		if rnd.IntN(2) == 0 {
			size = 128
		}
		cidrLen := rnd.IntN(size - 3)
		oneNode := cidrLen + rnd.IntN(size-3-cidrLen+1)
		cidr := netip.PrefixFrom(randomAddr(rnd, size), cidrLen).Masked()
		id := uint32(1 + rnd.IntN(1<<rnd.IntN(32)))
		s := subnets{conf: contivconf.FamilyIPAM{PodSubnetCIDR: cidr, PodSubnetOneNodePrefixLen: oneNode}}
		got, err := s.podSubnet(id)

		count := new(big.Int).Lsh(big.NewInt(1), uint(oneNode-cidrLen))
		number := big.NewInt(int64(id))
		if number.Cmp(count) > 0 {
			if err == nil {
				t.Fatalf("%s /%d, node %d: got %v, want an error", cidr, oneNode, id, got)
			}
			continue
		}
		number.Mod(number, count)
		sliceSize := new(big.Int).Lsh(big.NewInt(1), uint(size-oneNode))
		base := new(big.Int).SetBytes(cidr.Addr().AsSlice())
		base.Add(base, new(big.Int).Mul(number, sliceSize))
		last := new(big.Int).Add(base, new(big.Int).Sub(sliceSize, big.NewInt(2)))
		want := PodSubnet{
			Subnet:      netip.PrefixFrom(bigAddr(base, size), oneNode),
			Gateway:     bigAddr(new(big.Int).Add(base, big.NewInt(1)), size),
			NATLoopback: bigAddr(last, size),
		}
		if err != nil || got != want {
			t.Fatalf("%s /%d, node %d: got %v, %v, want %v", cidr, oneNode, id, got, err, want)
		}
		back, ok := s.nodeIDOf(got.Gateway)
		if wantOK := oneNode-cidrLen < 32 || id != 0; ok != wantOK || back != id {
			t.Fatalf("%s /%d, node %d: nodeIDOf = %d, %v", cidr, oneNode, id, back, ok)
		}
	}
}

func randomAddr(rnd *rand.Rand, size int) netip.Addr {
	b := make([]byte, size/8)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func bigAddr(v *big.Int, size int) netip.Addr {
	a, _ := netip.AddrFromSlice(v.FillBytes(make([]byte, size/8)))
	return a
}

// TestSlicesAreDisjoint checks that all nodes of the default configuration have different slices.
func TestSlicesAreDisjoint(t *testing.T) {
	seen := map[netip.Prefix]uint32{}
	for id := uint32(1); id <= 256; id++ {
		p, err := v4Defaults().podSubnet(id)
		if err != nil {
			t.Fatal(err)
		}
		if other, dup := seen[p.Subnet]; dup {
			t.Fatalf("nodes %d and %d share %s", other, id, p.Subnet)
		}
		seen[p.Subnet] = id
	}
}

package nfttest

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/proto"
)

// Service returns a service of one TCP port with a cluster IP and backends; without backends it is rejected.
func Service(t testing.TB, name, vip string, affinity uint32, backends ...string) *lb.Service {
	t.Helper()
	g := &proto.BalancedGroup{Ports: []uint32{80}}
	if len(backends) == 0 {
		g.Verdict = proto.BalancedGroup_REJECT
	}
	for _, b := range backends {
		g.Addresses = append(g.Addresses, netip.MustParseAddr(b).AsSlice()...)
	}
	a := netip.MustParseAddr(vip)
	s, err := lb.Parse(&proto.BalancedServiceUpdate{Namespace: "ns", Name: name, AffinitySeconds: affinity,
		Ports: []*proto.BalancedPort{{Name: "p", Protocol: 6, Ipv6: a.Is6(), Everywhere: g,
			Frontends: []*proto.BalancedFrontend{{Address: a.AsSlice(), Port: 80}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Seeded returns a source of random numbers whose seed is in the test's log.
func Seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// Prefix returns one of few prefixes, so that many contain each other, also at the ends of the address space. size is the size of an
// address in bytes.
func Prefix(rng *rand.Rand, size int) netip.Prefix {
	b := make([]byte, size)
	if rng.IntN(4) == 0 {
		for i := range b {
			b[i] = 0xff
		}
	}
	b[0] = byte(rng.IntN(2) * 255)
	b[len(b)-1] = byte(rng.IntN(256))
	b[len(b)-2] = byte(rng.IntN(2) * 255)
	a, _ := netip.AddrFromSlice(b)
	bits := a.BitLen() - rng.IntN(12)
	if rng.IntN(20) == 0 {
		bits = rng.IntN(a.BitLen() + 1)
	}
	return netip.PrefixFrom(a, bits).Masked()
}

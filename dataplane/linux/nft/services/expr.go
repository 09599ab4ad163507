package services

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
)

// Expressions of services' rules, in addition to expr.go of package wire: lookups from and to any register.

func (c *ruleset) name(b *balancer, m mapID) string { return b.defs[m].name }

// fronts returns the name of the map from the key of a packet to its group, for this picker.
func (c *ruleset) fronts(b *balancer, p picker) string {
	if p.outside {
		return c.name(b, mapOutside)
	}
	return c.name(b, mapFrontends)
}

func (c *ruleset) backends(b *balancer, p picker) string {
	return c.name(b, mapBackends+mapID(p.shard))
}

func (c *ruleset) loadSaddr(reg uint32) {
	if c.a == 1 {
		c.Payload(unix.NFT_PAYLOAD_NETWORK_HEADER, 12, 4, reg)
	} else {
		c.Payload(unix.NFT_PAYLOAD_NETWORK_HEADER, 8, 16, reg)
	}
}

func (c *ruleset) loadDaddr(reg uint32) {
	if c.a == 1 {
		c.Payload(unix.NFT_PAYLOAD_NETWORK_HEADER, 16, 4, reg)
	} else {
		c.Payload(unix.NFT_PAYLOAD_NETWORK_HEADER, 24, 16, reg)
	}
}

// loadKey loads the packet's destination key into the registers from n on.
func (c *ruleset) loadKey(n uint32) {
	c.loadDaddr(r32(n))
	c.Meta(unix.NFT_META_L4PROTO, r32(n+c.a))
	c.Payload(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, r32(n+c.a+1))
}

// loadOriginalKey loads the original destination key of the connection.
func (c *ruleset) loadOriginalKey() {
	addr := uint32(unix.NFT_CT_DST_IP)
	if c.a > 1 {
		addr = unix.NFT_CT_DST_IP6
	}
	c.ctOriginalTo(addr, r32(0))
	c.Meta(unix.NFT_META_L4PROTO, r32(c.a))
	c.ctOriginalTo(unix.NFT_CT_PROTO_DST, r32(c.a+1))
}

func (c *ruleset) ctOriginalTo(key, reg uint32) {
	c.Begin("ct")
	c.Uint32(unix.NFTA_CT_KEY, key)
	c.Uint32(unix.NFTA_CT_DREG, reg)
	c.Uint8(unix.NFTA_CT_DIRECTION, 0)
	c.End()
}

// notPods tests that the sender is not a pod.
func (c *ruleset) notPods() {
	c.loadSaddr(wire.Reg1)
	c.Lookup("pods", true)
}

func (c *ruleset) lookupFrom(set string, reg uint32, not bool) {
	c.Begin("lookup")
	c.String(unix.NFTA_LOOKUP_SET, set)
	c.Uint32(unix.NFTA_LOOKUP_SREG, reg)
	if not {
		c.Uint32(unix.NFTA_LOOKUP_FLAGS, unix.NFT_LOOKUP_F_INV)
	}
	c.End()
}

// mapFrom looks up the value in the registers from from on, and stores the result in those from to on.
func (c *ruleset) mapFrom(name string, from, to uint32) {
	c.Begin("lookup")
	c.String(unix.NFTA_LOOKUP_SET, name)
	c.Uint32(unix.NFTA_LOOKUP_SREG, from)
	c.Uint32(unix.NFTA_LOOKUP_DREG, to)
	c.End()
}

func (c *ruleset) verdictFrom(name string, from uint32) { c.mapFrom(name, from, unix.NFT_REG_VERDICT) }

func (c *ruleset) cmpReg(reg uint32, value []byte, not bool) {
	op := uint32(unix.NFT_CMP_EQ)
	if not {
		op = unix.NFT_CMP_NEQ
	}
	c.Begin("cmp")
	c.Uint32(unix.NFTA_CMP_SREG, reg)
	c.Uint32(unix.NFTA_CMP_OP, op)
	c.Value(unix.NFTA_CMP_DATA, value)
	c.End()
}

// random stores a random number below n.
func (c *ruleset) random(n, reg uint32) {
	c.Begin("numgen")
	c.Uint32(unix.NFTA_NG_DREG, reg)
	c.Uint32(unix.NFTA_NG_MODULUS, n)
	c.Uint32(unix.NFTA_NG_TYPE, unix.NFT_NG_RANDOM)
	c.Uint32(unix.NFTA_NG_OFFSET, 0)
	c.End()
}

const dynsetDelete = 2 // NFT_DYNSET_OP_DELETE

// updateMap changes an element of a map. If there is no room for a new element the rule ends.
func (c *ruleset) updateMap(name string, op, key, value, seconds uint32) {
	c.Begin("dynset")
	c.String(unix.NFTA_DYNSET_SET_NAME, name)
	c.Uint32(unix.NFTA_DYNSET_OP, op)
	c.Uint32(unix.NFTA_DYNSET_SREG_KEY, key)
	c.Uint32(unix.NFTA_DYNSET_SREG_DATA, value)
	if seconds > 0 {
		c.Bytes(unix.NFTA_DYNSET_TIMEOUT, binary.BigEndian.AppendUint64(nil, uint64(seconds)*1000))
	}
	c.End()
}

// translate translates the connection to the address and port in the registers from reg on.
func (c *ruleset) translate(reg uint32) {
	c.Begin("nat")
	c.Uint32(unix.NFTA_NAT_TYPE, unix.NFT_NAT_DNAT)
	c.Uint32(unix.NFTA_NAT_FAMILY, uint32(c.f.Proto))
	c.Uint32(unix.NFTA_NAT_REG_ADDR_MIN, reg)
	c.Uint32(unix.NFTA_NAT_REG_PROTO_MIN, reg+c.a)
	c.Uint32(unix.NFTA_NAT_FLAGS, wire.NATPortsGiven)
	c.End()
}

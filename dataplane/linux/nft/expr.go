package nft

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// exprs builds the expressions of a rule: what nft shows with --debug=netlink. Values load into reg1 and are compared or
// looked up there; concatenations follow each other in 32-bit registers, of which reg1 is the first four.
type exprs struct {
	buffer
	open [2]int // of the expression being built
}

const (
	reg1           = unix.NFT_REG_1
	reg2           = unix.NFT_REG_2
	reg32          = unix.NFT_REG32_00 // the first 32-bit register, at the place of reg1
	dreg           = 1                 // the attribute "destination register" of payload, meta, ct, fib, immediate
	ipsDst         = 1 << 5            // IPS_DST_NAT
	natPortsGiven  = 1 << 1            // NF_NAT_RANGE_PROTO_SPECIFIED
	natRandomFully = 1 << 4            // NF_NAT_RANGE_PROTO_RANDOM_FULLY
)

func (e *exprs) begin(name string) {
	e.open[0] = e.nest(unix.NFTA_LIST_ELEM)
	e.str(unix.NFTA_EXPR_NAME, name)
	e.open[1] = e.nest(unix.NFTA_EXPR_DATA)
}

func (e *exprs) end() {
	e.endNest(e.open[1])
	e.endNest(e.open[0])
}

// data adds an attribute with a value.
func (e *exprs) data(typ uint16, value []byte) {
	at := e.nest(typ)
	e.bytes(unix.NFTA_DATA_VALUE, value)
	e.endNest(at)
}

func host32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }
func net16(v uint16) []byte  { return binary.BigEndian.AppendUint16(nil, v) }

// Loads.

func (e *exprs) meta(key, reg uint32) {
	e.begin("meta")
	e.u32(unix.NFTA_META_KEY, key)
	e.u32(unix.NFTA_META_DREG, reg)
	e.end()
}

func (e *exprs) payload(base, offset, size, reg uint32) {
	e.begin("payload")
	e.u32(unix.NFTA_PAYLOAD_DREG, reg)
	e.u32(unix.NFTA_PAYLOAD_BASE, base)
	e.u32(unix.NFTA_PAYLOAD_OFFSET, offset)
	e.u32(unix.NFTA_PAYLOAD_LEN, size)
	e.end()
}

func (e *exprs) ct(key uint32) {
	e.begin("ct")
	e.u32(unix.NFTA_CT_KEY, key)
	e.u32(unix.NFTA_CT_DREG, reg1)
	e.end()
}

// ctOriginal loads a key of the direction in which the connection was made.
func (e *exprs) ctOriginal(key uint32) {
	e.begin("ct")
	e.u32(unix.NFTA_CT_KEY, key)
	e.u32(unix.NFTA_CT_DREG, reg1)
	e.u8(unix.NFTA_CT_DIRECTION, 0)
	e.end()
}

func (e *exprs) fib(result, flags uint32) {
	e.begin("fib")
	e.u32(unix.NFTA_FIB_DREG, reg1)
	e.u32(unix.NFTA_FIB_RESULT, result)
	e.u32(unix.NFTA_FIB_FLAGS, flags)
	e.end()
}

func (e *exprs) immediate(reg uint32, value []byte) {
	e.begin("immediate")
	e.u32(unix.NFTA_IMMEDIATE_DREG, reg)
	e.data(unix.NFTA_IMMEDIATE_DATA, value)
	e.end()
}

// Tests of what is in reg1.

func (e *exprs) cmp(op uint32, value []byte) {
	e.begin("cmp")
	e.u32(unix.NFTA_CMP_SREG, reg1)
	e.u32(unix.NFTA_CMP_OP, op)
	e.data(unix.NFTA_CMP_DATA, value)
	e.end()
}

// equal tests for a value, or for any other.
func (e *exprs) equal(value []byte, not bool) {
	if not {
		e.cmp(unix.NFT_CMP_NEQ, value)
	} else {
		e.cmp(unix.NFT_CMP_EQ, value)
	}
}

// between tests for first..last, or for what is outside.
func (e *exprs) between(first, last []byte, not bool) {
	if !not {
		e.cmp(unix.NFT_CMP_GTE, first)
		e.cmp(unix.NFT_CMP_LTE, last)
		return
	}
	e.begin("range")
	e.u32(unix.NFTA_RANGE_SREG, reg1)
	e.u32(unix.NFTA_RANGE_OP, unix.NFT_RANGE_NEQ)
	e.data(unix.NFTA_RANGE_FROM_DATA, first)
	e.data(unix.NFTA_RANGE_TO_DATA, last)
	e.end()
}

// bitwise makes reg1 = reg1 & mask ^ xor.
func (e *exprs) bitwise(mask, xor []byte) {
	e.begin("bitwise")
	e.u32(unix.NFTA_BITWISE_SREG, reg1)
	e.u32(unix.NFTA_BITWISE_DREG, reg1)
	e.u32(unix.NFTA_BITWISE_LEN, uint32(len(mask)))
	e.data(unix.NFTA_BITWISE_MASK, mask)
	e.data(unix.NFTA_BITWISE_XOR, xor)
	e.end()
}

// anyBit tests that one of some bits of a number of the machine's byte order is set.
func (e *exprs) anyBit(bits uint32) {
	e.bitwise(host32(bits), host32(0))
	e.cmp(unix.NFT_CMP_NEQ, host32(0))
}

// lookup tests that reg1, and what follows it, is in a set.
func (e *exprs) lookup(set string, not bool) {
	e.begin("lookup")
	e.str(unix.NFTA_LOOKUP_SET, set)
	e.u32(unix.NFTA_LOOKUP_SREG, reg1)
	if not {
		e.u32(unix.NFTA_LOOKUP_FLAGS, unix.NFT_LOOKUP_F_INV)
	}
	e.end()
}

// verdictMap looks reg1 up in a map of verdicts and carries out what it finds.
func (e *exprs) verdictMap(name string) {
	e.begin("lookup")
	e.str(unix.NFTA_LOOKUP_SET, name)
	e.u32(unix.NFTA_LOOKUP_SREG, reg1)
	e.u32(unix.NFTA_LOOKUP_DREG, unix.NFT_REG_VERDICT)
	e.end()
}

// Statements.

// verdict adds the data of a verdict; chain is "" for those that lead nowhere.
func (w *buffer) verdict(typ uint16, code int32, chain string) {
	data := w.nest(typ)
	v := w.nest(unix.NFTA_DATA_VERDICT)
	w.u32(unix.NFTA_VERDICT_CODE, uint32(code))
	if chain != "" {
		w.str(unix.NFTA_VERDICT_CHAIN, chain)
	}
	w.endNest(v)
	w.endNest(data)
}

func (e *exprs) immediateVerdict(code int32, chain string) {
	e.begin("immediate")
	e.u32(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT)
	e.verdict(unix.NFTA_IMMEDIATE_DATA, code, chain)
	e.end()
}

// setMark stores reg1 as the packet's mark.
func (e *exprs) setMark() {
	e.begin("meta")
	e.u32(unix.NFTA_META_KEY, unix.NFT_META_MARK)
	e.u32(unix.NFTA_META_SREG, reg1)
	e.end()
}

// simple is an expression without attributes.
func (e *exprs) simple(name string) {
	e.begin(name)
	e.end()
}

func (e *exprs) log(prefix string) {
	e.begin("log")
	e.str(unix.NFTA_LOG_PREFIX, prefix)
	e.end()
}

// logGroup sends the packet's first bytes to a group of NFLOG.
func (e *exprs) logGroup(prefix string, group uint16, size uint32) {
	e.begin("log")
	e.str(unix.NFTA_LOG_PREFIX, prefix)
	e.bytes(unix.NFTA_LOG_GROUP, net16(group))
	e.u32(unix.NFTA_LOG_SNAPLEN, size)
	e.end()
}

// limit lets pass so many packets in a second, and so many at once.
func (e *exprs) limit(rate uint64, burst uint32) {
	e.begin("limit")
	e.bytes(unix.NFTA_LIMIT_RATE, binary.BigEndian.AppendUint64(nil, rate))
	e.bytes(unix.NFTA_LIMIT_UNIT, binary.BigEndian.AppendUint64(nil, 1))
	e.u32(unix.NFTA_LIMIT_BURST, burst)
	e.u32(unix.NFTA_LIMIT_TYPE, unix.NFT_LIMIT_PKTS)
	e.end()
}

func (e *exprs) reject(typ uint32, code uint8) {
	e.begin("reject")
	e.u32(unix.NFTA_REJECT_TYPE, typ)
	if typ != unix.NFT_REJECT_TCP_RST {
		e.u8(unix.NFTA_REJECT_ICMP_CODE, code)
	}
	e.end()
}

// ports loads a range of ports for nat and masq into the registers after reg1, and adds the attributes that name them.
func (e *exprs) portRegs(first, last uint16) {
	e.immediate(reg2, net16(first))
	if last != first {
		e.immediate(reg2+1, net16(last))
	}
}

// nat translates to the address in reg1 and, if hasPorts, the ports from portRegs.
func (e *exprs) nat(typ, family uint32, ports, portRange bool, flags uint32) {
	e.begin("nat")
	e.u32(unix.NFTA_NAT_TYPE, typ)
	e.u32(unix.NFTA_NAT_FAMILY, family)
	e.u32(unix.NFTA_NAT_REG_ADDR_MIN, reg1)
	if ports {
		e.u32(unix.NFTA_NAT_REG_PROTO_MIN, reg2)
	}
	if portRange {
		e.u32(unix.NFTA_NAT_REG_PROTO_MAX, reg2+1)
	}
	if flags != 0 {
		e.u32(unix.NFTA_NAT_FLAGS, flags)
	}
	e.end()
}

func (e *exprs) masquerade(ports, portRange bool, flags uint32) {
	e.begin("masq")
	if flags != 0 {
		e.u32(unix.NFTA_MASQ_FLAGS, flags)
	}
	if ports {
		e.u32(unix.NFTA_MASQ_REG_PROTO_MIN, reg2)
	}
	if portRange {
		e.u32(unix.NFTA_MASQ_REG_PROTO_MAX, reg2+1)
	}
	e.end()
}

package wire

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Exprs builds the expressions of a rule, as nft shows them with --debug=netlink. Values are loaded into Reg1 and compared or looked up
// there; the parts of a concatenation are in consecutive 32-bit registers, and Reg1 consists of the first four.
type Exprs struct {
	Buffer
	open [2]int // offsets of the expression being built
}

const (
	Reg1           = unix.NFT_REG_1
	reg2           = unix.NFT_REG_2
	Reg32          = unix.NFT_REG32_00 // the first 32-bit register, at the place of Reg1
	dreg           = 1                 // the attribute "destination register" of payload, meta, ct, fib, immediate
	StatusDNAT     = 1 << 5            // IPS_DST_NAT
	NATPortsGiven  = 1 << 1            // NF_NAT_RANGE_PROTO_SPECIFIED
	NATRandomFully = 1 << 4            // NF_NAT_RANGE_PROTO_RANDOM_FULLY
)

// Begin starts an expression, and End completes it.
func (e *Exprs) Begin(name string) {
	e.open[0] = e.Nest(unix.NFTA_LIST_ELEM)
	e.String(unix.NFTA_EXPR_NAME, name)
	e.open[1] = e.Nest(unix.NFTA_EXPR_DATA)
}

func (e *Exprs) End() {
	e.EndNest(e.open[1])
	e.EndNest(e.open[0])
}

// Value adds an attribute with a value.
func (e *Exprs) Value(typ uint16, value []byte) {
	at := e.Nest(typ)
	e.Bytes(unix.NFTA_DATA_VALUE, value)
	e.EndNest(at)
}

// Host32 returns a number in host byte order.
func Host32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }
func net16(v uint16) []byte  { return binary.BigEndian.AppendUint16(nil, v) }

// Loads.

func (e *Exprs) Meta(key, reg uint32) {
	e.Begin("meta")
	e.Uint32(unix.NFTA_META_KEY, key)
	e.Uint32(unix.NFTA_META_DREG, reg)
	e.End()
}

func (e *Exprs) Payload(base, offset, size, reg uint32) {
	e.Begin("payload")
	e.Uint32(unix.NFTA_PAYLOAD_DREG, reg)
	e.Uint32(unix.NFTA_PAYLOAD_BASE, base)
	e.Uint32(unix.NFTA_PAYLOAD_OFFSET, offset)
	e.Uint32(unix.NFTA_PAYLOAD_LEN, size)
	e.End()
}

func (e *Exprs) CT(key uint32) {
	e.Begin("ct")
	e.Uint32(unix.NFTA_CT_KEY, key)
	e.Uint32(unix.NFTA_CT_DREG, Reg1)
	e.End()
}

// Direction is a direction of a connection, numbered as in the kernel.
type Direction uint8

// The directions: that of the connection's first packet, and that of the replies.
const (
	Original Direction = iota
	Reply
)

// CTOf loads a key of one direction of the connection.
func (e *Exprs) CTOf(d Direction, key uint32) {
	e.Begin("ct")
	e.Uint32(unix.NFTA_CT_KEY, key)
	e.Uint32(unix.NFTA_CT_DREG, Reg1)
	e.Uint8(unix.NFTA_CT_DIRECTION, uint8(d))
	e.End()
}

func (e *Exprs) FIB(result, flags uint32) {
	e.Begin("fib")
	e.Uint32(unix.NFTA_FIB_DREG, Reg1)
	e.Uint32(unix.NFTA_FIB_RESULT, result)
	e.Uint32(unix.NFTA_FIB_FLAGS, flags)
	e.End()
}

func (e *Exprs) Immediate(reg uint32, value []byte) {
	e.Begin("immediate")
	e.Uint32(unix.NFTA_IMMEDIATE_DREG, reg)
	e.Value(unix.NFTA_IMMEDIATE_DATA, value)
	e.End()
}

// Tests of the value in Reg1.

func (e *Exprs) Compare(op uint32, value []byte) {
	e.Begin("cmp")
	e.Uint32(unix.NFTA_CMP_SREG, Reg1)
	e.Uint32(unix.NFTA_CMP_OP, op)
	e.Value(unix.NFTA_CMP_DATA, value)
	e.End()
}

// Equal tests whether Reg1 is equal to a value, or with not, different from it.
func (e *Exprs) Equal(value []byte, not bool) {
	if not {
		e.Compare(unix.NFT_CMP_NEQ, value)
	} else {
		e.Compare(unix.NFT_CMP_EQ, value)
	}
}

// Between tests whether Reg1 is in first..last, or with not, outside.
func (e *Exprs) Between(first, last []byte, not bool) {
	if !not {
		e.Compare(unix.NFT_CMP_GTE, first)
		e.Compare(unix.NFT_CMP_LTE, last)
		return
	}
	e.Begin("range")
	e.Uint32(unix.NFTA_RANGE_SREG, Reg1)
	e.Uint32(unix.NFTA_RANGE_OP, unix.NFT_RANGE_NEQ)
	e.Value(unix.NFTA_RANGE_FROM_DATA, first)
	e.Value(unix.NFTA_RANGE_TO_DATA, last)
	e.End()
}

// Bitwise computes Reg1 = Reg1 & mask ^ xor.
func (e *Exprs) Bitwise(mask, xor []byte) {
	e.Begin("bitwise")
	e.Uint32(unix.NFTA_BITWISE_SREG, Reg1)
	e.Uint32(unix.NFTA_BITWISE_DREG, Reg1)
	e.Uint32(unix.NFTA_BITWISE_LEN, uint32(len(mask)))
	e.Value(unix.NFTA_BITWISE_MASK, mask)
	e.Value(unix.NFTA_BITWISE_XOR, xor)
	e.End()
}

// AnyBit tests that at least one of the bits is set in a number in host byte order.
func (e *Exprs) AnyBit(bits uint32) {
	e.Bitwise(Host32(bits), Host32(0))
	e.Compare(unix.NFT_CMP_NEQ, Host32(0))
}

// Lookup tests that Reg1, with the registers that follow it, is in a set.
func (e *Exprs) Lookup(set string, not bool) {
	e.Begin("lookup")
	e.String(unix.NFTA_LOOKUP_SET, set)
	e.Uint32(unix.NFTA_LOOKUP_SREG, Reg1)
	if not {
		e.Uint32(unix.NFTA_LOOKUP_FLAGS, unix.NFT_LOOKUP_F_INV)
	}
	e.End()
}

// VerdictMap looks up Reg1 in a map of verdicts and executes the verdict found.
func (e *Exprs) VerdictMap(name string) {
	e.Begin("lookup")
	e.String(unix.NFTA_LOOKUP_SET, name)
	e.Uint32(unix.NFTA_LOOKUP_SREG, Reg1)
	e.Uint32(unix.NFTA_LOOKUP_DREG, unix.NFT_REG_VERDICT)
	e.End()
}

// Statements.

// Verdict adds the data of a verdict; chain is "" for verdicts without a chain.
func (w *Buffer) Verdict(typ uint16, code int32, chain string) {
	data := w.Nest(typ)
	v := w.Nest(unix.NFTA_DATA_VERDICT)
	w.Uint32(unix.NFTA_VERDICT_CODE, uint32(code))
	if chain != "" {
		w.String(unix.NFTA_VERDICT_CHAIN, chain)
	}
	w.EndNest(v)
	w.EndNest(data)
}

func (e *Exprs) ImmediateVerdict(code int32, chain string) {
	e.Begin("immediate")
	e.Uint32(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT)
	e.Verdict(unix.NFTA_IMMEDIATE_DATA, code, chain)
	e.End()
}

// SetMark stores Reg1 as the packet's mark.
func (e *Exprs) SetMark() {
	e.Begin("meta")
	e.Uint32(unix.NFTA_META_KEY, unix.NFT_META_MARK)
	e.Uint32(unix.NFTA_META_SREG, Reg1)
	e.End()
}

// Simple adds an expression without attributes.
func (e *Exprs) Simple(name string) {
	e.Begin(name)
	e.End()
}

func (e *Exprs) Log(prefix string) {
	e.Begin("log")
	e.String(unix.NFTA_LOG_PREFIX, prefix)
	e.End()
}

// LogGroup sends the packet's first bytes to a group of NFLOG.
func (e *Exprs) LogGroup(prefix string, group uint16, size uint32) {
	e.Begin("log")
	e.String(unix.NFTA_LOG_PREFIX, prefix)
	e.Bytes(unix.NFTA_LOG_GROUP, net16(group))
	e.Uint32(unix.NFTA_LOG_SNAPLEN, size)
	e.End()
}

// Limit passes at most rate packets per second, with the given burst.
func (e *Exprs) Limit(rate uint64, burst uint32) {
	e.Begin("limit")
	e.Bytes(unix.NFTA_LIMIT_RATE, binary.BigEndian.AppendUint64(nil, rate))
	e.Bytes(unix.NFTA_LIMIT_UNIT, binary.BigEndian.AppendUint64(nil, 1))
	e.Uint32(unix.NFTA_LIMIT_BURST, burst)
	e.Uint32(unix.NFTA_LIMIT_TYPE, unix.NFT_LIMIT_PKTS)
	e.End()
}

func (e *Exprs) Reject(typ uint32, code uint8) {
	e.Begin("reject")
	e.Uint32(unix.NFTA_REJECT_TYPE, typ)
	if typ != unix.NFT_REJECT_TCP_RST {
		e.Uint8(unix.NFTA_REJECT_ICMP_CODE, code)
	}
	e.End()
}

// PortRegs loads a range of ports for NAT and Masquerade into the registers after Reg1.
func (e *Exprs) PortRegs(first, last uint16) {
	e.Immediate(reg2, net16(first))
	if last != first {
		e.Immediate(reg2+1, net16(last))
	}
}

// NAT translates to the address in Reg1 and, with ports, to the ports from PortRegs.
func (e *Exprs) NAT(typ, family uint32, ports, portRange bool, flags uint32) {
	e.Begin("nat")
	e.Uint32(unix.NFTA_NAT_TYPE, typ)
	e.Uint32(unix.NFTA_NAT_FAMILY, family)
	e.Uint32(unix.NFTA_NAT_REG_ADDR_MIN, Reg1)
	if ports {
		e.Uint32(unix.NFTA_NAT_REG_PROTO_MIN, reg2)
	}
	if portRange {
		e.Uint32(unix.NFTA_NAT_REG_PROTO_MAX, reg2+1)
	}
	if flags != 0 {
		e.Uint32(unix.NFTA_NAT_FLAGS, flags)
	}
	e.End()
}

func (e *Exprs) Masquerade(ports, portRange bool, flags uint32) {
	e.Begin("masq")
	if flags != 0 {
		e.Uint32(unix.NFTA_MASQ_FLAGS, flags)
	}
	if ports {
		e.Uint32(unix.NFTA_MASQ_REG_PROTO_MIN, reg2)
	}
	if portRange {
		e.Uint32(unix.NFTA_MASQ_REG_PROTO_MAX, reg2+1)
	}
	e.End()
}

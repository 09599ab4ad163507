package vppfake

import (
	"math/rand/v2"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
)

// Return values of VPP's API (src/vnet/error.h) that the fake returns.
const (
	rvUnspecified        = int32(api.UNSPECIFIED)                     // -1
	rvInvalidSwIfIndex   = int32(api.INVALID_SW_IF_INDEX)             // -2
	rvNoSuchFIB          = int32(api.NO_SUCH_FIB)                     // -3
	rvNoSuchEntry        = int32(api.NO_SUCH_ENTRY)                   // -6
	rvInvalidValue       = int32(api.INVALID_VALUE)                   // -7
	rvUnimplemented      = int32(api.UNIMPLEMENTED)                   // -9
	rvInvalidSwIfIndex2  = int32(api.INVALID_SW_IF_INDEX_2)           // -10
	rvSyscall1           = int32(api.SYSCALL_ERROR_1)                 // -11
	rvSyscall2           = int32(api.SYSCALL_ERROR_2)                 // -12
	rvSyscall3           = int32(api.SYSCALL_ERROR_3)                 // -13
	rvFeatureDisabled    = int32(api.FEATURE_DISABLED)                // -30
	rvRegistration       = int32(api.INVALID_REGISTRATION)            // -31
	rvNoPaths            = int32(-52)                                 // NO_PATHS_IN_ROUTE
	rvNoMatchingIf       = int32(api.NO_MATCHING_INTERFACE)           // -54
	rvInvalidVlan        = int32(api.INVALID_VLAN)                    // -55
	rvVlanExists         = int32(api.VLAN_ALREADY_EXISTS)             // -56
	rvAddressLength      = int32(api.ADDRESS_LENGTH_MISMATCH)         // -59
	rvAddressNotFound    = int32(api.ADDRESS_NOT_FOUND_FOR_INTERFACE) // -60
	rvAddressUndeletable = int32(api.ADDRESS_NOT_DELETABLE)           // -61
	rvIP6NotEnabled      = int32(api.IP6_NOT_ENABLED)                 // -62
	rvSubifExists        = int32(api.SUBIF_ALREADY_EXISTS)            // -68
	rvInvalidInterface   = int32(api.INVALID_INTERFACE)               // -71
	rvLimitExceeded      = int32(api.LIMIT_EXCEEDED)                  // -162
	rvInvalidArgument    = int32(api.INVALID_ARGUMENT)                // -73
	rvVlanTagCount       = int32(api.INVALID_VLAN_TAG_COUNT)          // -72
	rvUnexpectedState    = int32(api.UNEXPECTED_INTF_STATE)           // -74
	rvTunnelExists       = int32(api.TUNNEL_EXIST)                    // -75
	rvInvalidDecapNext   = int32(api.INVALID_DECAP_NEXT)              // -76
	rvIfExists           = int32(api.IF_ALREADY_EXISTS)               // -79
	rvValueExists        = int32(api.VALUE_EXIST)                     // -81
	rvSameSrcDst         = int32(api.SAME_SRC_DST)                    // -82
	rvAddressFamily      = int32(api.INVALID_ADDRESS_FAMILY)          // -97
	rvInvalidSubif       = int32(api.INVALID_SUB_SW_IF_INDEX)         // -98
	rvAddressInUse       = int32(api.ADDRESS_IN_USE)                  // -105
	rvAddressFound       = int32(api.ADDRESS_FOUND_FOR_INTERFACE)     // -114
	rvEntryExists        = int32(api.ENTRY_ALREADY_EXISTS)            // -116
	rvBDExists           = int32(api.BD_ALREADY_EXISTS)               // -119
	rvBDInUse            = int32(api.BD_IN_USE)                       // -120
	rvBDNotModifiable    = int32(api.BD_NOT_MODIFIABLE)               // -121
	rvBDTooBig           = int32(api.BD_ID_EXCEED_MAX)                // -122
	rvUnsupported        = int32(api.UNSUPPORTED)                     // -126
	rvDuplicateAddress   = int32(api.DUPLICATE_IF_ADDRESS)            // -127
	rvInitFailed         = int32(api.INIT_FAILED)                     // -144
	rvInstanceInUse      = int32(api.INSTANCE_IN_USE)                 // -147
	rvHasBVI             = int32(api.BD_ALREADY_HAS_BVI)              // -152
	rvPrefixLength       = int32(-171)                                // INVALID_PREFIX_LENGTH
	rvAlreadyDisabled    = int32(-169)                                // FEATURE_ALREADY_DISABLED
	rvAlreadyEnabled     = int32(-170)                                // FEATURE_ALREADY_ENABLED
)

type mac = ethernet_types.MacAddress

// none is VPP's ~0: no index, no table.
const none = ^uint32(0)

// objectKind is one kind of VPP objects: a function that registers its messages, and one that adds its objects to Fake.Dump (nil: they are part
// of other objects there).
type objectKind struct {
	register func(*table)
	dump     func(*state, *dumper)
}

// objectKinds is the complete list of the kinds of objects that this VPP supports: a new kind needs a file and a line here.
func objectKinds() []objectKind {
	return []objectKind{
		{registerControl, nil},
		{registerInterfaces, dumpInterfaces},
		{registerQueues, nil},
		{registerLoopbacks, nil},
		{registerSubInterfaces, nil},
		{registerAfPacket, nil},
		{registerTap, nil},
		{registerMemif, dumpMemifSockets},
		{registerVxlan, nil},
		{registerPipes, nil},
		{registerAddresses, nil},
		{registerTables, dumpTables},
		{registerRoutes, nil},
		{registerNeighbors, dumpNeighbors},
		{registerProxyARP, dumpProxyARP},
		{registerBridges, dumpBridges},
		{registerARPTermination, nil},
		{registerXconnect, nil},
		{registerTagRewrite, nil},
		{registerFeatures, nil},
		{registerNAT, dumpNAT},
		{func(*table) {}, dumpContiv}, // registerContiv: depends on Config
		{registerACL, dumpACL},
		{registerDHCP, dumpDHCP},
		{registerPG, nil},
		{registerFatal, nil},
	}
}

// state is all state that a crash deletes. The fake's mutex guards it.
type state struct {
	cfg   Config
	rng   *rand.Rand
	boot  uint32
	table *table

	ifs      interfaces
	queues   uint32 // number of queues created so far, to distribute them over the workers
	loops    pool
	taps     map[uint32]*iface
	hosts    map[string]*iface
	memif    memifs
	vxlan    vxlans
	pipes    pool
	ip       ipState
	l2       l2State
	features map[featureKey]bool
	nat      nat
	contiv   contivState
	acl      aclState
	dhcp     []*dhcpClient
}

func newState(cfg Config, rng *rand.Rand, boot uint32) *state {
	st := &state{
		cfg: cfg, rng: rng, boot: boot, table: newTable(),
		taps:     map[uint32]*iface{},
		hosts:    map[string]*iface{},
		features: map[featureKey]bool{},
	}
	for _, fam := range objectKinds() {
		fam.register(st.table)
	}
	cfg.registerContiv(st.table)
	for _, name := range cfg.Without {
		delete(st.table.byName, name)
	}
	st.table.number(rng)
	st.ip.start()
	st.l2.start()
	st.memif.start()
	st.vxlan.start()
	st.nat.start()
	st.contiv.start(cfg.Connections)
	st.acl.start()
	st.ifs.watchers = map[*session]uint32{}
	local := st.create(&iface{name: "local0", hw: &hardware{devType: "local"}})
	local.hw.owner = local
	for _, name := range cfg.NICs {
		st.create(&iface{name: name, hw: &hardware{devType: "dpdk", ethernet: true, linkUp: true, mac: st.randomMAC()}})
	}
	return st
}

func (st *state) now() time.Time { return st.cfg.Now() }

// removeSession removes the subscriptions of a client whose connection is closed.
func (st *state) removeSession(s *session) { delete(st.ifs.watchers, s) }

// randomMAC returns a MAC of 02:fe and four random bytes, as VPP does.
func (st *state) randomMAC() mac {
	r := st.rng.Uint32()
	return mac{2, 0xfe, byte(r >> 24), byte(r >> 16), byte(r >> 8), byte(r)}
}

// pool allocates small numbers as VPP's bitmap allocators do: the lowest free number.
type pool struct{ used map[uint32]bool }

func (p *pool) take(want uint32) bool {
	if p.used == nil {
		p.used = map[uint32]bool{}
	}
	if p.used[want] {
		return false
	}
	p.used[want] = true
	return true
}

func (p *pool) lowest() uint32 {
	for i := uint32(0); ; i++ {
		if p.take(i) {
			return i
		}
	}
}

func (p *pool) free(i uint32) { delete(p.used, i) }

// lcg implements VPP's random_u32 with a seed that starts at 0: the ids that VPP generates are always the same.
func lcg(seed uint32) uint32 { return 1664525*seed + 1013904223 }

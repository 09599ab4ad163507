package denied

import (
	"net/netip"
	"time"
)

// Flow is a packet that network policy has dropped. Source and destination are the real ones: the backend of a service, and the client before
// SNAT.
type Flow struct {
	Time     time.Time
	Ingress  bool           // dropped by the policy of the receiving pod; otherwise by that of the sending pod
	Protocol uint8          // IP protocol number
	Source   netip.AddrPort // the port is 0 where the protocol has none
	Dest     netip.AddrPort
	// ICMPType and ICMPCode are set for protocols 1 and 58.
	ICMPType, ICMPCode uint8
}

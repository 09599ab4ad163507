package denied

import (
	"net/netip"
	"time"
)

// Flow is a packet that network policy has dropped. Its ends are the real ones: the backend of a service, and the client before source
// NAT.
type Flow struct {
	Time     time.Time
	Ingress  bool           // the policy of the receiving pod dropped it; else that of the sending one
	Protocol uint8          // IP protocol number
	Source   netip.AddrPort // the port is 0 where the protocol has none
	Dest     netip.AddrPort
	// ICMPType and ICMPCode are set for protocols 1 and 58.
	ICMPType, ICMPCode uint8
}

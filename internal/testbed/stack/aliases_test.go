package stack

import (
	"net/netip"
	"testing"

	"contiv.dev/vswitch/dataplane/hostports"
)

// What the host itself sends to an address with an alias goes there, with the address of the link; what others send does not.
func TestAliases(t *testing.T) {
	s := host()
	s.SetRoute("aliases", Route{Dst: nets("254.0.0.0/8")[0], Via: addr("172.30.1.1"), Device: "vpp1"})
	s.SetAliases(false, hostports.Aliases{Link: "vpp1", Aliases: []hostports.Alias{
		{At: netip.MustParseAddrPort("10.99.0.1:30080"), Proto: "tcp", To: netip.MustParseAddrPort("254.1.2.3:30080")}}})
	is(t, "an address of its own", s.Send(packet("10.99.0.1", 1, "10.99.0.1", 30080)), "vpp1", "172.30.1.2:1", "254.1.2.3:30080")
	is(t, "the answer", s.Receive("vpp1", packet("254.1.2.3", 30080, "172.30.1.2", 1)), "", "10.99.0.1:30080", "10.99.0.1:1")
	is(t, "others", s.Receive("eth0", packet("10.99.0.7", 1, "10.99.0.1", 30080)), "vpp1", "172.30.1.2:1", "172.30.1.1:30080")
}

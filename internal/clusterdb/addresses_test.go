package clusterdb

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestAddresses: addresses of endpoints are returned without a look-up, and names are looked up. One unknown name is an error, and does not
// hide the other addresses.
func TestAddresses(t *testing.T) {
	c := Config{Endpoints: []string{"https://192.0.2.2:2379", "[2001:db8::1]:2379", "etcd-1:12379", "http://gone.example:2379", "unix:///run/etcd.sock"}}
	asked := []string{}
	got, err := c.Addresses(t.Context(), func(_ context.Context, network, host string) ([]netip.Addr, error) {
		asked = append(asked, network+" "+host)
		if host == "etcd-1" {
			return []netip.Addr{netip.MustParseAddr("::ffff:192.0.2.1"), netip.MustParseAddr("2001:db8::2")}, nil
		}
		return nil, errors.New("no such host")
	})
	want := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:12379"), netip.MustParseAddrPort("192.0.2.2:2379"),
		netip.MustParseAddrPort("[2001:db8::1]:2379"), netip.MustParseAddrPort("[2001:db8::2]:12379")}
	if !slices.Equal(got, want) || !slices.Equal(asked, []string{"ip etcd-1", "ip gone.example"}) {
		t.Errorf("%v, asked for %q", got, asked)
	}
	if err == nil || !strings.Contains(err.Error(), "gone.example:2379: no such host") {
		t.Errorf("error %v", err)
	}
	if got, err := (Config{}).Addresses(t.Context(), nil); len(got) > 0 || err != nil {
		t.Errorf("embedded: %v, %v", got, err)
	}
}

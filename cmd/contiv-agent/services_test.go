package main

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"
)

// TestReservedEtcd: the addresses in --etcd-endpoints are reserved.
func TestReservedEtcd(t *testing.T) {
	o := defaultOptions()
	o.etcd.Endpoints = []string{"https://192.0.2.7:2379", "https://[2001:db8::7]:2379"}
	a := &agent{opts: o, log: slog.New(slog.DiscardHandler)}
	want := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.7:2379"), netip.MustParseAddrPort("[2001:db8::7]:2379")}
	if got := a.etcdAddresses(t.Context()); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

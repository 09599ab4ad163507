package main

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// TestHandshake checks that a client is connected on the port that is served and on no other, in
// both families.
func TestHandshake(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("raw sockets need root")
	}
	for network, address := range map[string]string{"ip4:132": "127.0.0.1", "ip6:132": "::1"} {
		conn, err := net.ListenPacket(network, address)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- answer(conn, map[uint16]bool{9003: true}) }() //lint:allow go: waited for below
		to := &net.IPAddr{IP: net.ParseIP(address)}
		if err := handshake(to, 9003, time.Now().Add(10*time.Second)); err != nil {
			t.Errorf("%s: the port that is served: %v", address, err)
		}
		if err := handshake(to, 9004, time.Now().Add(50*time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the port that is not served: %v", address, err)
		}
		_ = conn.Close()
		<-ended
	}
}

// TestForeignPacket checks that damaged or short packets are not accepted.
func TestForeignPacket(t *testing.T) {
	want := packet{from: 1, to: 2, verification: 3, kind: typeAck, initiate: 4}
	b := want.bytes()
	if got, ok := parse(b); !ok || got != want {
		t.Errorf("%+v, %t instead of %+v", got, ok, want)
	}
	b[5]++
	if _, ok := parse(b); ok {
		t.Error("a wrong checksum was taken")
	}
	if _, ok := parse(b[:20]); ok {
		t.Error("a short packet was taken")
	}
}

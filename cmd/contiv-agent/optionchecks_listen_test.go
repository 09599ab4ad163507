package main

import "testing"

// TestListenAddress: a bad --healthz-bind-address is rejected with the other flags, before anything is claimed or programmed.
func TestListenAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"": true, ":10256": true, "127.0.0.1:0": true, "[::1]:10256": true, "bad": false, ":port": false, "1.2.3.4": false, ":70000": false,
	} {
		if err := checkListenAddress(healthFlag, address); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
}

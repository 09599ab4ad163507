package denied

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

func bytesOf(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	v4 = "45000028 00000000 40060000 0a010102 0a010103"
	v6 = "60000000 0014 %s 40 fd100001000000000000000000000002 fd100001000000000000000000000003"
)

// TestParse tests that packets of all kinds are parsed, and that truncated packets are accepted.
func TestParse(t *testing.T) {
	ip6 := func(next string) string { return strings.Replace(v6, "%s", next, 1) }
	for name, test := range map[string]struct{ packet, want string }{
		"TCP":            {v4 + "c001 0050", "6 10.1.1.2:49153 10.1.1.3:80 0 0"},
		"options":        {"46" + v4[2:] + "00000000 c001 0050", "6 10.1.1.2:49153 10.1.1.3:80 0 0"},
		"later fragment": {"45000028 00000001 40110000 0a010102 0a010103 c0010050", "17 10.1.1.2:0 10.1.1.3:0 0 0"},
		"cut off":        {v4 + "c001", "6 10.1.1.2:0 10.1.1.3:0 0 0"},
		"ICMP":           {"45000028 00000000 40010000 0a010102 0a010103 0800", "1 10.1.1.2:0 10.1.1.3:0 8 0"},
		"UDP over IPv6":  {ip6("11") + "c001 0035", "17 [fd10:1::2]:49153 [fd10:1::3]:53 0 0"},
		"extension":      {ip6("3c") + "8400000000000000 c001 0007", "132 [fd10:1::2]:49153 [fd10:1::3]:7 0 0"},
		"first fragment": {ip6("2c") + "0600000100000000 c001 0050", "6 [fd10:1::2]:49153 [fd10:1::3]:80 0 0"},
		"fragment":       {ip6("2c") + "0600000900000000 c001 0050", "6 [fd10:1::2]:0 [fd10:1::3]:0 0 0"},
		"ICMPv6":         {ip6("3a") + "8000", "58 [fd10:1::2]:0 [fd10:1::3]:0 128 0"},
		"not IP":         {"00", ""},
		"short":          {"4500", ""},
		"nothing":        {"", ""},
	} {
		f, ok := Parse(bytesOf(t, test.packet))
		if got := text(f); ok != (test.want != "") || ok && got != test.want {
			t.Errorf("%s: %q %t, want %q", name, got, ok, test.want)
		}
	}
}

// FuzzParse tests that no packet causes a panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte{0x45})
	f.Add([]byte{0x60, 39: 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if flow, ok := Parse(b); ok && (!flow.Source.IsValid() || !flow.Dest.IsValid()) {
			t.Errorf("%x: %+v", b, flow)
		}
	})
}

func text(f Flow) string {
	return fmt.Sprintf("%d %s %s %d %d", f.Protocol, f.Source, f.Dest, f.ICMPType, f.ICMPCode)
}

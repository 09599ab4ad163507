package diag

import (
	"strings"
	"testing"
)

// FuzzParsers checks that no input from VPP, the kernel or a caller causes a panic, and that a read-only command is one
// line of known words.
func FuzzParsers(f *testing.F) {
	f.Add("show ip fib table 1 10.1.2.0/24")
	f.Add("10.1.2.2/32 fib:1 index:1\n API refs:1\n forwarding: \n [0] [@1]: x")
	f.Add("     3  ip4-input   ip4 ttl <= 1  error")
	f.Fuzz(func(t *testing.T, text string) {
		parseFIB(text)
		parseErrors(text)
		parseInterfaces(text)
		findListener(text, map[string]bool{"1": true})
		if readOnly(text) == nil && (!strings.HasPrefix(strings.TrimSpace(text), "show ") || strings.ContainsAny(text, "\n%;")) {
			t.Errorf("%q passes for a command that only reads", text)
		}
	})
}

package iptables

import (
	"fmt"
	"strings"
)

// Limits of iptables and the kernel, in bytes.
const (
	maxChainName = 28
	maxIface     = 15
	maxComment   = 200 // 255 in the kernel; quoting doubles it at worst
	maxLogPrefix = 29
	maxRule      = 8000 // a line of iptables-restore has at most 10240 bytes, and words are counted too
	maxWords     = 240
)

// quote returns s as one word for iptables-restore. Control characters, above all line ends, become spaces, so that a text cannot end a
// line and begin another.
func quote(s string, limit int) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		if i+len(string(r)) > limit {
			break
		}
		switch {
		case r < ' ' || r == 0x7f:
			b.WriteByte(' ')
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// commentArg returns a match that contains a text; it matches every packet.
func commentArg(text string) string { return "-m comment --comment " + quote(text, maxComment) }

// word returns an error unless the name s is one word that iptables does not interpret in another way.
func word(what, s string, limit int) error {
	switch {
	case s == "":
		return fmt.Errorf("%s without a name", what)
	case len(s) > limit:
		return fmt.Errorf("%s %q is longer than %d characters", what, s, limit)
	case s[0] == '-' || s[0] == '!':
		return fmt.Errorf("%s %q begins with %q", what, s, s[:1])
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\'' || r == '\\' }):
		return fmt.Errorf("%s %q has characters that are not allowed in names", what, s)
	}
	return nil
}

package kit

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// TagPrefix is the prefix of the tags of our interfaces and bridge domains and of the names of our tables.
	TagPrefix = "cv:"
	// nicTagPrefix is the prefix of the tag of an interface that VPP creates itself.
	nicTagPrefix = "cvp:"
	// PoolTagPrefix is the prefix of the tags of the warm pool's interfaces, which all descriptors ignore.
	PoolTagPrefix = "contiv-pool:"
	// tagMax is the number of characters of a tag that VPP stores.
	tagMax = 63
	// tagHash is the length of the hash in the tag of a long name.
	tagHash = 12
)

// TagOf returns the tag of an object: the prefix and its name. A name that does not fit is cut, and a hash of it
// appended.
func TagOf(name string) string { return TagPrefix + ShortName(name, TagPrefix) }

// NicTagOf returns the tag of an interface that VPP creates itself.
func NicTagOf(name string) string { return nicTagPrefix + ShortName(name, nicTagPrefix) }

func ShortName(name, prefix string) string {
	if len(prefix)+len(name) <= tagMax {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:tagMax-len(prefix)-tagHash-1] + "~" + hex.EncodeToString(sum[:])[:tagHash]
}

// NameOfTag returns the name in one of our tags. For a long name it returns the shortened name; LongNames maps it to the
// full one.
func NameOfTag(tag string) (string, bool) {
	if name, ok := strings.CutPrefix(tag, nicTagPrefix); ok {
		return name, true
	}
	return strings.CutPrefix(tag, TagPrefix)
}

func IsNICTag(tag string) bool { return strings.HasPrefix(tag, nicTagPrefix) }

// LongNames maps shortened names, of objects whose tag holds only a part, to full names. It is filled from the desired
// values.
type LongNames map[string]string

func (l LongNames) Add(name string) {
	for _, prefix := range []string{TagPrefix, nicTagPrefix} {
		if short := ShortName(name, prefix); short != name {
			l[short] = name
		}
	}
}

func (l LongNames) Full(short string) string {
	if name, ok := l[short]; ok {
		return name
	}
	return short
}

package kit

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// TagPrefix starts the tags of our interfaces and bridge domains and the names of our tables.
	TagPrefix = "cv:"
	// nicTagPrefix starts the tag of an interface that VPP has by itself.
	nicTagPrefix = "cvp:"
	// PoolTagPrefix starts the tags of the warm pool's interfaces, which no kind looks at.
	PoolTagPrefix = "contiv-pool:"
	// tagMax is what VPP keeps of a tag.
	tagMax = 63
	// tagHash is the length of the hash in the tag of a long name.
	tagHash = 12
)

// TagOf is the mark of an object: the prefix and its name. A name that does not fit is cut, and a hash of it appended.
func TagOf(name string) string { return TagPrefix + ShortName(name, TagPrefix) }

// NicTagOf is the mark of an interface that VPP has by itself.
func NicTagOf(name string) string { return nicTagPrefix + ShortName(name, nicTagPrefix) }

func ShortName(name, prefix string) string {
	if len(prefix)+len(name) <= tagMax {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:tagMax-len(prefix)-tagHash-1] + "~" + hex.EncodeToString(sum[:])[:tagHash]
}

// NameOfTag is the name in a tag of ours. For a long name it is what is left of it; LongNames has the rest.
func NameOfTag(tag string) (string, bool) {
	if name, ok := strings.CutPrefix(tag, nicTagPrefix); ok {
		return name, true
	}
	return strings.CutPrefix(tag, TagPrefix)
}

func IsNICTag(tag string) bool { return strings.HasPrefix(tag, nicTagPrefix) }

// LongNames finds the full names of objects whose tag holds only a part. It takes them from the values that are desired.
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

package kit

import (
	"strings"
	"testing"
)

func TestTags(t *testing.T) {
	for _, n := range []int{1, 59, 60, 61, 63, 64, 200} {
		name := strings.Repeat("x", n)
		long := LongNames{}
		long.Add(name)
		for _, tag := range []string{TagOf(name), NicTagOf(name)} {
			if len(tag) > tagMax {
				t.Errorf("name of %d: tag of %d", n, len(tag))
			}
			short, ours := NameOfTag(tag)
			if !ours || long.Full(short) != name {
				t.Errorf("name of %d: back as %q", n, long.Full(short))
			}
		}
	}
	if TagOf(strings.Repeat("x", 100)+"a") == TagOf(strings.Repeat("x", 100)+"b") {
		t.Error("two long names have one tag")
	}
	for _, tag := range []string{"", PoolTagPrefix + "afpacket", "other", "CV:x"} {
		if name, ours := NameOfTag(tag); ours {
			t.Errorf("tag %q is ours: %q", tag, name)
		}
	}
	if IsNICTag(TagOf("p:x")) {
		t.Error("the name p:x makes a NIC")
	}
}

package ipset

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// maxName is the kernel's limit, without the terminating NUL.
const maxName = 31

// Name returns the kernel name of the set id of family f: cv40<id> or cv60<id>. A hash replaces an id that is too long or has characters
// that other tools cannot handle.
func Name(f table.Family, id string) string {
	prefix := mainPrefix(f)
	if id != "" && len(prefix)+len(id) <= maxName && !strings.ContainsFunc(id, unfit) {
		return prefix + id
	}
	sum := sha256.Sum256([]byte(id))
	return prefix + "_" + base64.RawURLEncoding.EncodeToString(sum[:])[:maxName-len(prefix)-1]
}

// names returns the possible names of a set: first its usual name, second a name that depends on its type. The second is used while a set
// of another type, which rules refer to, has the first.
func names(f table.Family, id string, t table.SetType) [2]string {
	return [2]string{Name(f, id), Name(f, id+"\x00"+kernelType(t))}
}

func unfit(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("_-.:", r)
}

func mainPrefix(f table.Family) string { return "cv" + strconv.Itoa(int(f)) + "0" }
func tempPrefix(f table.Family) string { return "cv" + strconv.Itoa(int(f)) + "t" }

// ours reports whether a set of this name was created by this agent or an earlier one, and whether it was temporary.
func ours(name string) (mine, temporary bool) {
	for _, f := range []table.Family{table.IPv4, table.IPv6} {
		if strings.HasPrefix(name, tempPrefix(f)) {
			return true, true
		}
		if strings.HasPrefix(name, mainPrefix(f)) {
			return true, false
		}
	}
	return false, false
}

// kernelType returns the kernel's name of the type.
func kernelType(t table.SetType) string {
	switch t {
	case table.SetIP:
		return "hash:ip"
	case table.SetIPAndPort:
		return "hash:ip,port"
	case table.SetNet:
		return "hash:net"
	}
	return ""
}

package wire

import "slices"

// Hash identifies the contents of a rule. It is stored in the kernel's rule, as user data.
type Hash [16]byte

// Program is a rule in the kernel's format.
type Program struct {
	Exprs []byte // contents of NFTA_RULE_EXPRESSIONS
	Udata []byte
	Hash  Hash
}

// SameHashes reports whether the programs have these hashes, which were read from the kernel.
func SameHashes(programs []Program, hashes []Hash) bool {
	return slices.EqualFunc(programs, hashes, func(p Program, h Hash) bool { return p.Hash == h })
}

// The user data of rules is a list of type, length, value. nft shows type 0 as the comment and skips unknown types.
const (
	UserDataComment = 0
	udataHash       = 200
	maxComment      = 200
)

func AppendUserData(u []byte, comment string, h Hash) []byte {
	if comment != "" {
		comment = comment[:min(len(comment), maxComment)]
		u = append(u, UserDataComment, byte(len(comment)+1))
		u = append(append(u, comment...), 0)
	}
	u = append(u, udataHash, byte(len(h)))
	return append(u, h[:]...)
}

// HashOf returns the hash in user data, or zero if there is none.
func HashOf(u []byte) (h Hash) {
	for len(u) >= 2 && len(u) >= 2+int(u[1]) {
		if u[0] == udataHash && int(u[1]) == len(h) {
			copy(h[:], u[2:])
		}
		u = u[2+int(u[1]):]
	}
	return h
}

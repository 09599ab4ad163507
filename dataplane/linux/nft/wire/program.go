package wire

import "slices"

// Hash stands for all that a rule does. It is kept in the kernel's rule, as user data.
type Hash [16]byte

// Program is a rule as the kernel takes it.
type Program struct {
	Exprs []byte // what NFTA_RULE_EXPRESSIONS holds
	Udata []byte
	Hash  Hash
}

// SameHashes is true if the programs are those of which the kernel has the hashes.
func SameHashes(programs []Program, hashes []Hash) bool {
	return slices.EqualFunc(programs, hashes, func(p Program, h Hash) bool { return p.Hash == h })
}

// The user data of rules is a list of type, length, value. nft shows type 0 as the comment and skips what it does not know.
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

// HashOf takes the hash out of user data; zero if there is none.
func HashOf(u []byte) (h Hash) {
	for len(u) >= 2 && len(u) >= 2+int(u[1]) {
		if u[0] == udataHash && int(u[1]) == len(h) {
			copy(h[:], u[2:])
		}
		u = u[2+int(u[1]):]
	}
	return h
}

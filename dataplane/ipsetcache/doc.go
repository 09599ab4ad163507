// Package ipsetcache keeps the members of IP sets for drivers that cannot hand sets to their dataplane and flatten them into
// rules, and for those whose sets are addressed member by member.
//
// It takes the messages about sets as they come and keeps each set's members in parsed, canonical form. Peers may write the
// same member in several ways ("10.0.0.1" and "10.0.0.1/32", "fd00::1" and "fd00:0::1", "10.0.0.7/24" for 10.0.0.0/24): a
// member is counted once per spelling, so that taking one spelling back does not take the member away from the others.
//
// What changed is kept per set as a net difference since the user last said Ack: a member that came and went again, or a set
// that was replaced by an equal one, is no change, and nothing has to be rendered for it. Asking for changes costs their
// number, not the size of the sets.
package ipsetcache

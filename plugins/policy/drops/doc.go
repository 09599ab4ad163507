// Package drops remembers which connections network policy has denied, newest first, for operators. It is bounded in memory and in what it
// does for a packet, whatever pods send: a pod's flows have a limited number of places, and those of one peer a part of these.
package drops

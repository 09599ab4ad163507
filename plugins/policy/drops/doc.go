// Package drops stores which connections network policy has denied, newest first, for operators. Its memory and its work per packet are
// bounded, whatever pods send: the number of flows of a pod is limited, and also the number of its flows with one peer.
package drops

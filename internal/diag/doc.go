// Package diag is the agent's part in finding faults: it asks VPP's command line, sends probes from inside a pod, records what becomes of
// packets, and compares what is programmed with what is in the dataplane. cmd/contiv-netctl is its client; the package has the messages of
// both sides (types.go).
//
// Everything that is more than looking at the agent's memory is a POST, which internal/httpapi lets only trusted callers make: root on the
// node's socket, or the owner of the token.
//
//   - cli.go: VPP's CLI. VPP runs whatever is left of a line as a further command, so a line that begins with "show" may write.
//     Without --vpp-cli-write a line therefore has to match a grammar of whole words (grammar.go), else it is refused.
//   - probe.go: echo requests, TCP connections and datagrams, from a pod's network namespace or the node's.
//   - trace.go: one recording at a time, for as long as its request lives: nothing is left behind when the client is gone.
//     vpptrace.go records by VPP's packet tracer, nfttrace.go by the kernel's (nft monitor trace; nftlisten.go has the times
//     that tool listens). Beside it are the answers of those that route (facts.go, vppfib.go), since a trace does not say why
//     a packet was not sent, or whose route it took.
//   - kernel.go: routes, neighbours and forwarding entries as the kernel has them.
package diag

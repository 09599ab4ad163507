// Package diag is the agent's part in troubleshooting: it runs VPP CLI commands, sends probes from inside a pod, records the path of
// packets, and compares the programmed values with the dataplane. cmd/contiv-netctl is its client; the package has the messages of both
// sides (types.go).
//
// Every request that does more than read the agent's memory is a POST, which internal/httpapi allows only to trusted callers: root on the
// node's socket, or the owner of the token.
//
//   - cli.go: VPP's CLI. VPP runs the rest of a line as a further command, so a line that begins with "show" may write.
//     Without --vpp-cli-write a line therefore has to match a grammar of whole words (grammar.go), otherwise it is rejected.
//   - probe.go: echo requests, TCP connections and datagrams, from a pod's network namespace or the node's.
//   - trace.go: one recording at a time, for as long as its request lives: nothing is left behind when the client disconnects.
//     vpptrace.go records by VPP's packet tracer, nfttrace.go by the kernel's (nft monitor trace; nftlisten.go detects when
//     that tool listens). The answer also has the routes of the kernel and of VPP (facts.go, vppfib.go), since a trace does not
//     show why a packet was not sent, or whose route it took.
//   - kernel.go: routes, neighbours and forwarding entries of the kernel.
package diag

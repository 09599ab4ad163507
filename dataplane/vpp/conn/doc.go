// Package conn is the agent's connection to VPP's binary API.
//
// A Conn maintains one socket to VPP: it connects, checks that VPP has every message that the agent needs, distinguishes a restarted VPP
// from the previous process, detects a frozen VPP, and reconnects automatically. Requests go through Lanes (pipelined, for the scheduler)
// or Invoke (one at a time). The message types, the encoding and the error texts are govpp's; the socket code is our own, since govpp's
// core costs more time than VPP itself at full speed, has no deadline by default and detects a dead VPP only when it writes (see
// BenchmarkRoutes).
//
// # The life of a connection
//
//	Disconnected --dial, register, check messages, identify the process--> Connected
//	Connected    --socket closed-----------------------------------------> Disconnected
//	Connected    --no sign of life for HealthTimeout---------------------> NotResponding
//	NotResponding--everything sent before has been answered--------------> Connected (same boot)
//	NotResponding--socket closed-----------------------------------------> Disconnected
//
// A frozen VPP keeps its socket: requests that it has not read yet are carried out when it wakes up, so the agent may query VPP again only
// after them, on the same socket. Each transition to Connected begins a new session. Each request belongs to one session and is never
// carried over to the next.
//
// # Goroutines
//
// Each Conn has two named jobs: "vpp connection" (supervision) and "vpp reader" (decodes the messages from VPP). Replies of a Lane are
// handled on the goroutine that uses the lane.
package conn

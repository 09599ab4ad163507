// Package conn is the agent's connection to VPP's binary API.
//
// A Conn keeps one socket to VPP: it connects, checks that VPP has every message the agent needs, distinguishes a restarted VPP from the
// one it talked to before, notices a frozen one, and reconnects by itself. Requests go through Lanes (pipelined, for the scheduler) or
// Invoke (one at a time). The message types, the encoding and the error texts are govpp's; the socket is our own, since govpp's core costs
// more than VPP itself at full speed, has no deadline by default and is informed of a dead VPP only when it writes (see BenchmarkRoutes).
//
// # The life of a connection
//
//	Disconnected --dial, register, check messages, identify the process--> Connected
//	Connected    --socket closed-----------------------------------------> Disconnected
//	Connected    --no sign of life for HealthTimeout---------------------> NotResponding
//	NotResponding--everything sent before has been answered--------------> Connected (same boot)
//	NotResponding--socket closed-----------------------------------------> Disconnected
//
// A frozen VPP keeps its socket: requests that it has not read yet will be carried out when it wakes up, so the agent may look at VPP again
// only behind them, on the same socket. Each arrival in Connected begins a new session. Requests belong to a session: they never cross from
// one to the next.
//
// # Goroutines
//
// Two named jobs per Conn: "vpp connection" (supervision) and "vpp reader" (decodes what VPP sends). Replies of a Lane are handled on the
// goroutine that uses the lane.
package conn

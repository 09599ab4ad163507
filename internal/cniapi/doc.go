// Package cniapi is the wire contract between contiv-cni, the binary that the container runtime executes for every pod, and the agent. It
// imports only the standard library, because its imports are loaded once per pod.
//
// One connection to the agent's unix socket carries one request and one reply, each a JSON object on its own line:
//
//	$ echo '{"version":1,"command":"status"}' | socat - UNIX-CONNECT:/run/contiv/cni.sock
//	{"version":1,"result":{}}
//
// Unknown fields are ignored and new fields are optional, so a binary and an agent of neighbouring releases understand each other during
// the upgrade of a node; Version changes only if that cannot be kept.
//
// Every command is idempotent, so the client repeats a request whose connection broke: a pod that is added while the agent restarts is
// added by the new agent. The agent completes operations that it began for a client that disconnected.
//
// The socket is for root: mode 0600, in a directory of mode 0700 if the agent creates it, and the peer's user, as reported by the kernel,
// has to be root or the agent's own.
package cniapi

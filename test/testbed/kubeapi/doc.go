// Package kubeapi is a test double of the Kubernetes API server for tests, the demo and the benchmarks: it answers GET, LIST and WATCH for
// the resources that service proxies and network agents read (kinds.go), to client-go in protobuf or JSON, with selectors, chunked and
// streamed lists, bookmarks and a history that can be compacted. Real clients, including our agent and kube-proxy, work with it as with
// the real server; it accepts their writes (events, leases, status) and discards them.
//
// Objects come from the test, in this process: Put and Delete. Each is encoded once for all readers, so that a quarter of a million
// endpoints cost little. The server can become unreachable (Cut), or answer with errors (Fail), and recover.
//
// It listens on any listener of the test, also in several network namespaces at once: every node can have it at its loopback address, and
// so no test depends on the network that it tests.
package kubeapi

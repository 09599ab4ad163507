// Package kubeapi is a double of the Kubernetes API server for tests, the demo and the benchmarks: it answers GET, LIST and WATCH for what
// service proxies and network agents read (kinds.go), to client-go in protobuf or JSON, with selectors, chunked and streamed lists,
// bookmarks and a history that can be compacted. Real clients, our agent and kube-proxy among them, cannot tell the difference; what they
// write (events, leases, status) is accepted and thrown away.
//
// Objects come from the test, in this process: Put and Delete. Each is encoded once for all readers, so that a quarter of a million
// endpoints are no burden. The server can go away (Cut), or answer with errors (Fail), and come back.
//
// It listens wherever a test wants, also in several network namespaces at once: every node can have it at its loopback address, and so no
// test depends on the network that it tests.
package kubeapi

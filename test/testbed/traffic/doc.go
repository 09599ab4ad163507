// Package traffic makes load for tests and benchmarks: streams of checksummed bytes, requests that are answered, and short connections,
// between network namespaces of the testbed. Clients and servers run in the test's own process; their sockets belong to the namespaces. So
// one side of a stream can read at any time what the other side has received.
//
// All sockets block: a reader sleeps in the kernel, not in Go's poller, so that the measurements show the network.
package traffic

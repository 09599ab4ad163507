// Package nsdo runs functions inside a network namespace. Operations that act on the namespace of the calling thread need
// it: new sockets, child processes and /proc/sys/net. It also creates and removes namespaces, for test pods and for tests.
package nsdo

// Package whoami is a server and a client for the pods of the testbed: a TCP and UDP server that answers with its name and
// the client's address as it sees it, and a client that reports the outcome of a packet: an answer, a rejection or no
// answer. Both run in the test's process with sockets in the namespaces, so that thousands of connections cost little.
package whoami

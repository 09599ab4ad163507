// Package whoami is what pods of the testbed serve and ask: a TCP and UDP server that answers with its name and the address
// that it sees of the client, and a client that says what became of a packet: an answer, a rejection or silence. Both run
// in the test's process with sockets in the namespaces, so that thousands of connections cost little.
package whoami

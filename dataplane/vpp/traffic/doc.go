// Package traffic reads what VPP and our plugin report about packets: connections, sessions by pod and by service, packets that network policy
// denied, and how often rules matched. It changes nothing in VPP and belongs to no descriptor: each reader has its own lane, beside the
// scheduler's.
package traffic

// Package processor turns Service and EndpointSlice objects into what renderers take: complete ContivService values and the
// sets of node addresses and of interfaces between which service traffic flows.
//
// It is pure: no I/O, no clock, no goroutine. Every method takes a change, recomputes the services that the change is about
// and calls the renderers for those that came out different. What a change costs depends on the service that it is about, and
// not on how many others there are; only changes of the node's zone and of the addresses of nodes look at all services.
//
// Which endpoints serve a port is decided in endpoints.go, by the rules of kube-proxy (CategorizeEndpoints), against whose
// code the test data were made.
package processor

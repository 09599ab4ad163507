// Package processor turns Service and EndpointSlice objects into the input of renderers: complete ContivService values, and the sets of
// node addresses and of interfaces between which service traffic flows.
//
// It is pure: no I/O, no clock, no goroutine. Every method takes a change, recomputes the affected services and calls the renderers for
// those whose value has changed. The cost of a change depends on the affected service, and not on the number of other services. Only
// changes of the node's zone and of the addresses of nodes process all services.
//
// The code in endpoints.go selects the endpoints that serve a port, by the rules of kube-proxy (CategorizeEndpoints). The test data were
// made with kube-proxy's code.
package processor

// Package service implements Kubernetes services, and so replaces kube-proxy on the node. It is the event handler that passes changes to
// the processor.
//
//	KubeStateChange (service, endpointslice, node), NodeUpdate, AddPod, DeletePod, resyncs
//	      │ plugin.go, events.go
//	      ▼
//	processor         pure: which endpoints serve which address, which interfaces take part
//	      │ renderer.ServiceRendererAPI
//	processor         pure: computes which endpoints serve which address, and the interfaces of service traffic
//	renderers         one per dataplane (and per address family, if need be); all get the same data
//
// Renderers put northbound values into the transaction of the event that is being handled (Txn). Package healthcheck answers the health
// checks of load balancers.
package service

// Package service implements Kubernetes services, and so replaces kube-proxy on the node. It is the event handler that passes changes to
// the processor.
//
//	KubeStateChange (service, endpointslice, node), NodeUpdate, AddPod, DeletePod, resyncs
//	      │ plugin.go, events.go
//	      ▼
//	processor         pure: computes which endpoints serve which address, and the interfaces of service traffic
//	      │ renderer.ServiceRendererAPI
//	      ▼
//	renderers         one per dataplane (or per address family of a dataplane); all get the same data
//
// Renderers put northbound values into the transaction of the event that is being handled (Txn). Package healthcheck answers the health
// checks of load balancers.
package service

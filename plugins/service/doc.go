// Package service implements Kubernetes services: it is the event handler that feeds the processor, and with it kube-proxy's
// successor on the node.
//
//	KubeStateChange (service, endpointslice, node), NodeUpdate, AddPod, DeletePod, resyncs
//	      │ plugin.go, events.go
//	      ▼
//	processor         pure: which endpoints serve which address, which interfaces take part
//	      │ renderer.ServiceRendererAPI
//	      ▼
//	renderers         one per dataplane (and per address family, if need be); all get the same data
//
// Renderers put northbound values into the transaction of the event that is being handled (Txn). Health checks of load
// balancers are answered by package healthcheck.
package service

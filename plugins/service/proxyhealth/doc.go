// Package proxyhealth answers cloud load balancers as kube-proxy does: for services with externalTrafficPolicy Cluster they ask
// every node at port 10256 whether it serves, and send no traffic to nodes that do not.
//
// GET /healthz is 200 while services get into the dataplane and the node stays, and 503 when it is being deleted or the cluster
// autoscaler is about to. GET /livez leaves the node out. The bodies are those of kube-proxy 1.36, so that programs that read them
// need not know which of the two answers. What differs: a dataplane that is away shows at once, and not when the next change of
// a service has waited for a minute.
package proxyhealth

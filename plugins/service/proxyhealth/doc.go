// Package proxyhealth answers health checks of cloud load balancers as kube-proxy does: for services with externalTrafficPolicy Cluster
// they query every node at port 10256, and send no traffic to nodes that do not report that they serve.
//
// GET /healthz returns 200 while changes of services get into the dataplane and the node stays, and 503 when the node is being deleted or
// the cluster autoscaler is about to delete it. GET /livez does not depend on the node's deletion. The bodies are those of kube-proxy 1.36,
// so that clients need not distinguish the two programs. One difference: a dataplane that is not running is reported immediately, and not
// only after the next change of a service has waited for a minute.
package proxyhealth

// Package healthcheck answers health checks of load balancers. A service with externalTrafficPolicy Local has a healthCheckNodePort: at
// this port of every node a load balancer queries over HTTP whether the node has endpoints of the service, and it sends traffic only to
// nodes that have some. The responses are those of kube-proxy: 200 or 503, with a JSON body and a header with the number of endpoints.
package healthcheck

// Package connectivity makes pods for `contiv-netctl connectivity test`: network namespaces that are connected by the same CNI requests that the
// container runtime would send, with servers for TCP and UDP inside. They need no image and no scheduler, and are removed by the request
// that ends the test, after their lifetime, and when the agent stops.
package connectivity

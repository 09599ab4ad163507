// Package testpods makes pods for `contiv-netctl connectivity test`: network namespaces that are connected as the container runtime
// would connect them, by the same CNI requests, with servers for TCP and UDP inside. They need no image and no scheduler, and are removed by
// the request that ends the test, after its lifetime, and when the agent stops.
package testpods

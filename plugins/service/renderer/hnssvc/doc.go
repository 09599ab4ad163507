// Package hnssvc renders services for Windows, whose Host Network Service has load balancers. The values are those of hostsvc, which do not
// depend on the dataplane; this package reports to users the features that load balancers of Windows lack (README.md of plugins/service has
// the matrix). A service that needs such a feature is not served, rather than served to more clients than it specifies.
package hnssvc

// Package hnssvc renders services for Windows, whose Host Network Service has load balancers. The values are hostsvc's, which know no
// dataplane; this package informs users what load balancers of Windows cannot do (README.md of plugins/service has the matrix). What they
// cannot do is not served, rather than served to more than the service says.
package hnssvc

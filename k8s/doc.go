// Package k8s holds the manifests: the chart contiv-vpp and contiv-vpp.yaml, the chart rendered with its default values. The Go code here makes the
// chart's schema (the options of contiv.conf come from package contivconf, so that they cannot diverge), and tests that the rendered file is the
// chart's, that a real API server accepts it, that requests which its RBAC does not allow are denied, and that the programs work with the flags, the
// Secrets and the service accounts that the manifests give them. The renderer, with Helm as a library, is in the module k8s/render.
package k8s

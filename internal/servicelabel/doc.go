// Package servicelabel names the node that the agent runs on. The name (contiv calls it the micro-service label) is the
// Kubernetes node name, or the host name when there is no Kubernetes.
package servicelabel

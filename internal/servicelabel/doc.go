// Package servicelabel names the node on which the agent runs. The name (contiv calls it the micro-service label) is
// the Kubernetes node name, or the host name when there is no Kubernetes.
package servicelabel

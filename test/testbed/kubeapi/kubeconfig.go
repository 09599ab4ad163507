package kubeapi

import "fmt"

// Kubeconfig returns a kubeconfig file for a server at an address such as 127.0.0.1:6443.
func Kubeconfig(address string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: http://%s
contexts:
- name: test
  context:
    cluster: test
    user: test
current-context: test
users:
- name: test
  user: {}
`, address)
}

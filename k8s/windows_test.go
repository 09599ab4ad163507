package k8s

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestWindowsNodes checks that Windows nodes get host-process containers with paths of Windows, and that the pods of Linux
// nodes stay on Linux nodes.
func TestWindowsNodes(t *testing.T) {
	t.Parallel()
	if strings.Contains(rendered(t, ""), "contiv-agent-windows") {
		t.Error("the manifests have Windows nodes' pods though nothing asks for them")
	}
	for _, values := range []string{"windows", "windows-external"} {
		manifest := variant(t, values)
		for _, d := range documents(t, manifest) {
			os := at(d, "spec", "template", "spec", "nodeSelector", "kubernetes.io/os")
			name := fmt.Sprint(at(d, "metadata", "name"))
			switch {
			case at(d, "kind") == "DaemonSet" && name == "contiv-agent-windows" && os != "windows",
				at(d, "kind") == "DaemonSet" && name != "contiv-agent-windows" && os != "linux":
				t.Errorf("%s: DaemonSet %s runs on %v", values, name, os)
			}
		}
		pod := at(object(t, manifest, "DaemonSet", "contiv-agent-windows"), "spec", "template", "spec")
		options := at(pod, "securityContext", "windowsOptions")
		if at(options, "hostProcess") != true || at(options, "runAsUserName") != `NT AUTHORITY\SYSTEM` || at(pod, "hostNetwork") != true {
			t.Errorf("%s: %v is not a host process of the system", values, pod)
		}
		var all []string
		for _, kind := range []string{"initContainers", "containers"} {
			list, _ := at(pod, kind).([]any)
			for _, c := range list {
				if at(c, "securityContext") != nil {
					t.Errorf("%s: container %v has settings of Linux: %v", values, at(c, "name"), at(c, "securityContext"))
				}
				all = append(all, argv(c)...)
			}
		}
		for _, a := range all {
			if _, value, _ := strings.Cut(a, "="); strings.HasPrefix(value, "/") || strings.HasPrefix(a, "/") {
				t.Errorf("%s: %s is a path of Linux", values, a)
			}
		}
		for _, same := range [][2]string{{"--run-dir=", "/cni.sock"}, {"--run-dir=", "/rest.sock"}} {
			i := slices.IndexFunc(all, func(a string) bool { return strings.HasPrefix(a, same[0]) })
			if i < 0 || !slices.ContainsFunc(all, func(a string) bool { return strings.HasSuffix(a, strings.TrimPrefix(all[i], same[0])+same[1]) }) {
				t.Errorf("%s: the CNI installer looks for another %s: %v", values, same[1], all)
			}
		}
	}
}

// TestWindowsNeeds checks that missing values that Windows nodes need are reported before anything is installed in the cluster.
func TestWindowsNeeds(t *testing.T) {
	t.Parallel()
	const server = "kubernetes: {server: 'https://192.0.2.1:6443'}, windows: {enabled: true"
	for values, want := range map[string]string{
		"{windows: {enabled: true}, contivConf: {vxlanVNI: 4096}}": "kubernetes.server",
		"{" + server + "}}": "vxlanVNI is 10",
		"{" + server + "}, contivConf: {vxlanVNI: 4095}}":                               "vxlanVNI is 4095",
		"{" + server + "}, contivConf: {vxlanVNI: 65536}}":                              "vxlanVNI is 65536",
		"{" + server + "}, contivConf: {vxlanVNI: 4096}, etcd: {mode: embedded}}":       "etcd.mode",
		"{" + server + ", cni: {binDir: /opt/cni/bin}}, contivConf: {vxlanVNI: 4096}}":  "binDir",
		"{" + server + ", cni: {confDir: 'C:\\\\conf'}}, contivConf: {vxlanVNI: 4096}}": "confDir",
		"{" + server + ", extraArgs: [log-level=debug]}, contivConf: {vxlanVNI: 4096}}": "extraArgs",
	} {
		if text, err := render(t, renderRequest{Values: values}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error about %s (%d bytes)", values, err, want, len(text))
		}
	}
}

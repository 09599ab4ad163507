// Command render renders the chart k8s/contiv-vpp as `helm template` would, with Helm as a library, into plain manifests. It is its own
// module, so that the product does not depend on Helm.
//
//	go run . [-values file.yaml] [-namespace kube-system] [-kubeconfig FILE] CHART > contiv-vpp.yaml
//
// With a kubeconfig, templates can look up objects in the cluster, as with `helm upgrade`; without one, lookups return nothing.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	values := flag.String("values", "", "file with values other than the chart's")
	namespace := flag.String("namespace", "kube-system", "namespace of the vswitch")
	kubeconfig := flag.String("kubeconfig", "", "cluster that templates look into")
	tests := flag.Bool("tests", false, "write what `helm test` runs instead")
	notes := flag.Bool("notes", false, "write the notes that Helm prints after an installation instead")
	flag.Parse()
	if err := run(os.Stdout, flag.Arg(0), *values, *namespace, *kubeconfig, *notes, *tests); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, dir, valuesFile, namespace, kubeconfig string, notes, tests bool) error {
	if dir == "" {
		return errors.New("name the chart's directory")
	}
	loaded, err := loader.Load(dir)
	if err != nil {
		return fmt.Errorf("chart %s: %w", dir, err)
	}
	values := map[string]any{}
	if valuesFile != "" {
		if values, err = chartutil.ReadValuesFile(valuesFile); err != nil {
			return fmt.Errorf("values: %w", err)
		}
	}
	// This also checks the values against the chart's schema.
	all, err := chartutil.ToRenderValues(loaded, values, chartutil.ReleaseOptions{
		Name: "contiv", Namespace: namespace, IsInstall: true,
	}, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	files, err := render(loaded, all, kubeconfig)
	if err != nil {
		return err
	}
	if notes {
		_, err := io.WriteString(w, files[path.Join(loaded.Name(), "templates/NOTES.txt")])
		return err
	}
	for name := range files {
		// Hooks of Helm are not part of the installed manifests.
		if strings.Contains(name, "/templates/tests/") != tests {
			delete(files, name)
		}
	}
	return write(w, files)
}

func render(c *chart.Chart, values chartutil.Values, kubeconfig string) (map[string]string, error) {
	if kubeconfig == "" {
		return engine.Render(c, values)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	return engine.RenderWithClient(c, values, config)
}

// write writes the files in order: dependencies first.
func write(w io.Writer, files map[string]string) error {
	order := []string{"rbac.yaml", "config.yaml", "remote.yaml", "etcd.yaml", "ksr.yaml", "vpp.yaml", "agent.yaml", "windows.yaml", "metrics.yaml",
		"connectivity.yaml"}
	names := make([]string, 0, len(files))
	for name := range files {
		if strings.HasSuffix(name, ".yaml") {
			if !slices.Contains(order, path.Base(name)) {
				return fmt.Errorf("%s has no place in the order of manifests; add it to render/main.go", name)
			}
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return slices.Index(order, path.Base(a)) - slices.Index(order, path.Base(b))
	})
	if _, err := fmt.Fprintln(w, "# Made from the chart k8s/contiv-vpp by `make manifests`; do not edit."); err != nil {
		return err
	}
	for _, name := range names {
		text := strings.TrimSpace(files[name])
		if text == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "---\n%s\n", strings.TrimPrefix(text, "---\n")); err != nil {
			return err
		}
	}
	return nil
}

// Command render renders the chart k8s/contiv-vpp as `helm template` would, with Helm as a library, into plain manifests. It is its own
// module, so that the product does not depend on Helm.
//
//	go run . [-values file.yaml] [-namespace kube-system] [-kubeconfig FILE] CHART > contiv-vpp.yaml
//	go run . -serve < requests > answers
//
// With a kubeconfig, templates can look up objects in the cluster, as with `helm upgrade`; without one, lookups return nothing.
//
// With -serve, one process renders many times: it answers each JSON object of its input with one of its output. Starting this program takes
// six times as long as rendering the chart.
package main

import (
	"encoding/json"
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
	var r request
	file := flag.String("values", "", "file with values other than the chart's")
	flag.StringVar(&r.Namespace, "namespace", "kube-system", "namespace of the vswitch")
	flag.StringVar(&r.Kubeconfig, "kubeconfig", "", "cluster that templates look into")
	flag.BoolVar(&r.Tests, "tests", false, "write what `helm test` runs instead")
	flag.BoolVar(&r.Notes, "notes", false, "write the notes that Helm prints after an installation instead")
	many := flag.Bool("serve", false, "serve the requests on standard input")
	flag.Parse()
	r.Chart = flag.Arg(0)
	run := func() error { return r.withValues(os.Stdout, *file) }
	if *many {
		run = func() error { return serve(os.Stdin, os.Stdout) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

// request is what to render. Values is the text of a values file.
type request struct {
	Chart, Values, Namespace, Kubeconfig string
	Notes, Tests                         bool
}

// answer has the manifests, or the error.
type answer struct{ Text, Error string }

// serve answers requests until the input ends.
func serve(in io.Reader, out io.Writer) error {
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("request: %w", err)
		}
		var text strings.Builder
		a := answer{}
		if err := r.run(&text); err != nil {
			a.Error = err.Error()
		} else {
			a.Text = text.String()
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

func (r request) withValues(w io.Writer, file string) error {
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("values: %w", err)
		}
		r.Values = string(text)
	}
	return r.run(w)
}

func (r request) run(w io.Writer) error {
	if r.Chart == "" {
		return errors.New("name the chart's directory")
	}
	loaded, err := loader.Load(r.Chart)
	if err != nil {
		return fmt.Errorf("chart %s: %w", r.Chart, err)
	}
	values, err := chartutil.ReadValues([]byte(r.Values))
	if err != nil {
		return fmt.Errorf("values: %w", err)
	}
	// This also checks the values against the chart's schema.
	all, err := chartutil.ToRenderValues(loaded, values, chartutil.ReleaseOptions{
		Name: "contiv", Namespace: r.Namespace, IsInstall: true,
	}, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	files, err := render(loaded, all, r.Kubeconfig)
	if err != nil {
		return err
	}
	if r.Notes {
		_, err := io.WriteString(w, files[path.Join(loaded.Name(), "templates/NOTES.txt")])
		return err
	}
	for name := range files {
		// Hooks of Helm are not part of the installed manifests.
		if strings.Contains(name, "/templates/tests/") != r.Tests {
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

package k8s

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"contiv.dev/vswitch/test/testbed/gobuild"
)

// rendering is one process of the program of module k8s/render. To start it takes several times as long as to render the chart, and the tests
// render the chart about 200 times.
type rendering struct {
	mu       sync.Mutex // one request at a time
	process  *exec.Cmd
	requests io.WriteCloser
	answers  *json.Decoder
}

// renderRequest is a request to the program; its fields are the program's flags. "" for Values stands for the chart's own.
type renderRequest struct {
	Chart, Values, Namespace, Kubeconfig string
	Notes, Tests                         bool
}

// buildRenderer builds the program of module k8s/render, once.
var buildRenderer = sync.OnceValue(func() error { return gobuild.Build{Module: "render"}.Commands(work, "contiv.dev/vswitch/k8s/render") })

// renderer returns the path of the program.
func renderer(t *testing.T) string {
	t.Helper()
	if err := buildRenderer(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(work, "render")
}

// started is the process, or nil. startRenderer starts it, once.
var (
	started       *rendering
	startRenderer = sync.OnceValue(func() error {
		if err := buildRenderer(); err != nil {
			return err
		}
		cmd := exec.Command(filepath.Join(work, "render"), "-serve")
		cmd.Stderr = os.Stderr
		requests, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		answers, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		started = &rendering{process: cmd, requests: requests, answers: json.NewDecoder(answers)}
		return nil
	})
)

// stopRenderer ends the process, if one was started.
func stopRenderer() error {
	if started == nil {
		return nil
	}
	return errors.Join(started.requests.Close(), started.process.Wait())
}

// render returns what the program writes; the error is the program's.
func render(t *testing.T, r renderRequest) (string, error) {
	t.Helper()
	if err := startRenderer(); err != nil {
		t.Fatal(err)
	}
	r.Chart, r.Namespace = "contiv-vpp", "kube-system"
	started.mu.Lock()
	defer started.mu.Unlock()
	if err := json.NewEncoder(started.requests).Encode(r); err != nil {
		t.Fatal(err)
	}
	var answer struct{ Text, Error string }
	if err := started.answers.Decode(&answer); err != nil {
		t.Fatalf("render: %v", err)
	}
	if answer.Error != "" {
		return "", errors.New(answer.Error)
	}
	return answer.Text, nil
}

// rendered returns the manifest for values, which must be valid.
func rendered(t *testing.T, values string) string {
	t.Helper()
	text, err := render(t, renderRequest{Values: values})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ofVariants has the manifests of variants by name.
var ofVariants sync.Map

// variant returns the manifest of a variant, which is rendered once for all tests.
func variant(t *testing.T, name string) string {
	t.Helper()
	values, ok := variants()[name]
	if !ok {
		t.Fatalf("no variant %q", name)
	}
	if text, ok := ofVariants.Load(name); ok {
		return fmt.Sprint(text)
	}
	text, _ := ofVariants.LoadOrStore(name, rendered(t, values))
	return fmt.Sprint(text)
}

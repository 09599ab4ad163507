package kube

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const apiServer = "https://10.10.0.1:6443"

// api is a client of the API server. It uses plain HTTP requests, so that a test defines exactly what is sent.
type api struct {
	http  *http.Client
	token string // of a service account; without it the client certificate authenticates
}

// newAPI authenticates with a certificate of the lab's PKI, or with a token.
func newAPI(pki, name, token string) (*api, error) {
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	cfg := &tls.Config{RootCAs: roots}
	if token == "" {
		cert, err := tls.LoadX509KeyPair(filepath.Join(pki, name+".crt"), filepath.Join(pki, name+".key"))
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return &api{http: &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, MaxIdleConnsPerHost: 16}}, token: token}, nil
}

// statusError is an answer other than 2xx.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d: %s", e.code, e.message) }

func (a *api) request(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, apiServer+path, content)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // only for the error message
		return nil, fmt.Errorf("%s %s: %w", method, path, &statusError{resp.StatusCode, strings.TrimSpace(string(text))})
	}
	return resp, nil
}

// do sends a request and decodes the answer, if into is not nil.
func (a *api) do(ctx context.Context, method, path string, body, into any) error {
	resp, err := a.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if into == nil {
		_, err := io.Copy(io.Discard, resp.Body)
		return err
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// pod has the fields that tests use.
type pod struct {
	Metadata struct {
		Name              string
		UID               string
		Labels            map[string]string
		DeletionTimestamp *time.Time
		ResourceVersion   string
	}
	Spec struct {
		NodeName string
	}
	Status struct {
		Phase      string
		PodIPs     []struct{ IP string }
		Conditions []struct{ Type, Status string }
	}
}

// is reports whether a condition is true.
func (p *pod) is(condition string) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == condition {
			return c.Status == "True"
		}
	}
	return false
}

func (p *pod) ips() []string {
	var ips []string
	for _, ip := range p.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	return ips
}

const podsPath = "/api/v1/namespaces/default/pods"

// pods returns the pods with the label app=….
func (a *api) pods(ctx context.Context, app string) ([]pod, error) {
	var list struct{ Items []pod }
	err := a.do(ctx, http.MethodGet, podsPath+"?labelSelector=app%3D"+app, nil, &list)
	return list.Items, err
}

// watchPods calls see with each event and its time of arrival, until see returns true. A watch that the API server ends is started again.
func (a *api) watchPods(ctx context.Context, app string, see func(kind string, p pod, at time.Time) (enough bool)) error {
	for {
		err := a.watchOnce(ctx, app, see)
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

func (a *api) watchOnce(ctx context.Context, app string, see func(kind string, p pod, at time.Time) (enough bool)) error {
	resp, err := a.request(ctx, http.MethodGet, podsPath+"?watch=1&labelSelector=app%3D"+app, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewReaderSize(resp.Body, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("watch pods: %w", err)
		}
		at := time.Now()
		var event struct {
			Type   string
			Object pod
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return fmt.Errorf("watch pods: %w", err)
		}
		if see(event.Type, event.Object, at) {
			return nil
		}
	}
}

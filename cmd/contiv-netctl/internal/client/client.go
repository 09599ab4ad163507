package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"contiv.dev/vswitch/internal/diag"
)

const (
	// SharedName is the name in a certificate that all agents share.
	SharedName = "contiv-agent"
	// maxAnswer bounds the size of an agent's answer: the dump of a large node.
	maxAnswer = 512 << 20
	// dialTimeout bounds connecting, so that an agent that does not respond does not delay the answers of the others.
	dialTimeout = 3 * time.Second
)

// Agent is the agent of one node.
type Agent struct {
	Name  string // of the node; empty until it is known
	where string
	base  string
	token string
	http  *http.Client
	// readOnly: only GET requests are sent, whatever the token allows.
	readOnly bool
}

// Local returns the agent behind a unix socket.
func Local(socket string) *Agent {
	return &Agent{where: socket, base: "http://agent", http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}}
}

// Credentials holds what other nodes' agents require.
type Credentials struct {
	CAFile, TokenFile string
	ServerName        string // instead of node name, address and SharedName
	// Plain uses HTTP without TLS, only to a loopback address, where the traffic does not leave the machine.
	Plain bool
}

// Remote returns the agent at host:port.
func Remote(node, address string, cred Credentials) (*Agent, error) {
	a := &Agent{Name: node, where: address, base: "https://" + address}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("--server %q: %w; use host:port", address, err)
	}
	if cred.TokenFile != "" {
		token, err := os.ReadFile(cred.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		a.token = strings.TrimSpace(string(token))
	}
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout}
	a.http = &http.Client{Transport: transport}
	if cred.Plain {
		addr, err := netip.ParseAddr(host)
		if host != "localhost" && (err != nil || !addr.IsLoopback()) {
			return nil, fmt.Errorf("agent at %s: --plain is for loopback addresses only; leave it out to use TLS", address)
		}
		a.base = "http://" + address
		return a, nil
	}
	names := []string{cred.ServerName}
	if cred.ServerName == "" {
		names = []string{node, host, SharedName}
	}
	transport.TLSClientConfig, err = verifying(cred.CAFile, names)
	return a, err
}

// verifying returns a TLS configuration that accepts certificates of the CA (of the system, without a file) for any of the names.
func verifying(caFile string, names []string) (*tls.Config, error) {
	var roots *x509.CertPool
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--ca: %s has no certificate in PEM form", caFile)
		}
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		// Go checks one name only. So the check is made here, of chain and name as in Go.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
			for _, c := range state.PeerCertificates[1:] {
				opts.Intermediates.AddCert(c)
			}
			leaf := state.PeerCertificates[0]
			if _, err := leaf.Verify(opts); err != nil {
				return err
			}
			var errs []error
			for _, name := range names {
				err := leaf.VerifyHostname(name)
				if name != "" && err == nil {
					return nil
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
	}, nil
}

// String returns the agent's name for messages.
func (a *Agent) String() string {
	if a.Name == "" {
		return a.where
	}
	return a.Name + " (" + a.where + ")"
}

// Error is an error that an agent returned.
type Error struct {
	Agent  string
	Path   string
	Status int
	Text   string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Status == http.StatusBadRequest || e.Status == http.StatusNotFound && e.Text != "" && !strings.HasPrefix(e.Text, "404 ") {
		return fmt.Sprintf("agent %s: %s", e.Agent, e.Text) // the path does not help: the user has not entered it
	}
	return fmt.Sprintf("agent %s: %s: %s (%d)", e.Agent, e.Path, e.Text, e.Status)
}

// GetText requests a path and returns the answer as text.
func (a *Agent) GetText(ctx context.Context, path string) (string, error) {
	return a.do(ctx, http.MethodGet, path, nil)
}

// Get requests a path and decodes the answer.
func (a *Agent) Get(ctx context.Context, path string, into any) error {
	body, err := a.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return a.decode(path, body, into)
}

// Post sends a request and decodes the answer.
func (a *Agent) Post(ctx context.Context, path string, request, into any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	body, err := a.do(ctx, http.MethodPost, path, data)
	if err != nil || into == nil {
		return err
	}
	return a.decode(path, body, into)
}

func (a *Agent) decode(path, body string, into any) error {
	if err := json.Unmarshal([]byte(body), into); err != nil {
		return fmt.Errorf("agent %s: %s: answer: %w", a, path, err)
	}
	return nil
}

func (a *Agent) do(ctx context.Context, method, path string, body []byte) (string, error) {
	resp, err := a.send(ctx, method, path, body)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return "", fmt.Errorf("agent %s: %s: %w", a, path, err)
	}
	return string(answer), nil
}

// errReadOnly is the error for a request that could change or send something, in a command that must not.
var errReadOnly = errors.New("this command only reads")

// send sends a request and returns the answer, or the error in it.
func (a *Agent) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	if a.readOnly && method != http.MethodGet {
		return nil, fmt.Errorf("agent %s: %s %s: %w", a, method, path, errReadOnly)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, &Unreachable{Agent: a.String(), Cause: plain(err)}
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return nil, fmt.Errorf("agent %s: %s: %w", a, path, err)
	}
	var reported struct {
		Error string `json:"error"`
	}
	e := &Error{Agent: a.String(), Path: path, Status: resp.StatusCode, Text: strings.TrimSpace(string(text))}
	if json.Unmarshal(text, &reported) == nil && reported.Error != "" {
		e.Text = reported.Error
	}
	if hint := a.hint(e); hint != "" {
		e.Text += "; " + hint
	}
	return nil, e
}

// hint returns the option that an error is about.
func (a *Agent) hint(e *Error) string {
	switch {
	case e.Status == http.StatusUnauthorized && a.token == "":
		return "give a token by --token-file"
	case e.Status == http.StatusUnauthorized:
		return "check the token in --token-file"
	case e.Status == http.StatusForbidden && a.token != "":
		return "the token in --token-file may give read access only"
	case e.Status == http.StatusBadRequest && strings.Contains(e.Text, "HTTP request to an HTTPS server"):
		return "leave out --plain"
	}
	return ""
}

// Unreachable means that an agent did not respond at all.
type Unreachable struct {
	Agent string
	Cause error
}

// Error implements error.
func (u *Unreachable) Error() string {
	return fmt.Sprintf("agent %s does not respond: %v", u.Agent, u.Cause)
}

// Unwrap implements errors.
func (u *Unreachable) Unwrap() error { return u.Cause }

// IsUnreachable reports whether an error means that the agent did not respond, so that further requests to it do not help.
func IsUnreachable(err error) bool {
	var u *Unreachable
	return errors.As(err, &u)
}

// plain returns the cause without URL and address, which the caller adds.
func plain(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return errors.New("no reply in time")
	}
	for _, known := range []syscall.Errno{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENOENT,
		syscall.EACCES, syscall.EPERM} {
		if errors.Is(err, known) {
			return known
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return errors.New("the connection was closed before an answer")
	}
	if err := tlsCause(err); err != nil {
		return err
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// tlsCause returns a failure of TLS with the option that it is about; nil if err is not a failure of TLS.
func tlsCause(err error) error {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &authority):
		return fmt.Errorf("%w; --ca must be the CA of the agents' certificates", authority)
	case errors.As(err, &name):
		return fmt.Errorf("%w; give the name in the certificate by --tls-server-name", name)
	case errors.As(err, &invalid):
		return fmt.Errorf("%w; check the agent's certificate (--http-cert of contiv-agent)", invalid)
	case errors.As(err, &record):
		return errors.New("it does not use TLS; --plain is for agents on a loopback address, all others need --http-cert")
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return errors.New("it serves HTTP, not HTTPS; --plain is for agents on a loopback address, all others need --http-cert")
	}
	return nil
}

// Recording is a trace that an agent is recording.
type Recording struct {
	agent *Agent
	body  io.ReadCloser
	lines *bufio.Reader
	id    string
}

// Trace starts recording packets; it returns once the recording runs.
func (a *Agent) Trace(ctx context.Context, req diag.TraceRequest) (*Recording, error) {
	data, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	resp, err := a.send(ctx, http.MethodPost, diag.TracePath, data)
	if err != nil {
		return nil, err
	}
	r := &Recording{agent: a, body: resp.Body, lines: bufio.NewReader(resp.Body)}
	ev, err := r.next()
	if err != nil {
		_ = r.body.Close()
		return nil, err
	}
	r.id = ev.ID
	return r, nil
}

func (r *Recording) next() (ev diag.TraceEvent, err error) {
	line, err := r.lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ev)
	}
	if err == nil && ev.Error != "" {
		err = errors.New(ev.Error)
	}
	if err != nil {
		err = fmt.Errorf("agent %s: trace: %w", r.agent, err)
	}
	return ev, err
}

// Stop ends the recording and returns what was recorded.
func (r *Recording) Stop(ctx context.Context) (*diag.Capture, error) {
	defer r.body.Close()
	if err := r.agent.Post(ctx, diag.TraceStopPath, diag.TraceEvent{ID: r.id}, nil); err != nil {
		return nil, err
	}
	ev, err := r.next()
	if err == nil && ev.Capture == nil {
		err = fmt.Errorf("agent %s: trace: it recorded nothing", r.agent)
	}
	return ev.Capture, err
}

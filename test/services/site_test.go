package services

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/whoami"
)

// site is the place of clients and servers: a network namespace, or a stack of the fake.
type site interface {
	// dial connects, like whoami.Dial.
	dial(ctx context.Context, network string, to netip.AddrPort, timeout time.Duration) (talk, error)
	// dialFrom connects by TCP from a source port.
	dialFrom(ctx context.Context, port uint16, to netip.AddrPort, timeout time.Duration) (talk, error)
}

// talk is a connection, or a series of UDP packets of one client port.
type talk interface {
	Query() (whoami.Answer, error)
	Close() error
}

// member is a node of the cluster, with the methods that tests use of its agent.
type member interface {
	// restart kills the agent, starts another one and waits until it is ready.
	restart(ctx context.Context) error
	// writes returns the number of writes of the agent to the dataplane.
	writes(ctx context.Context) (float64, error)
	// known returns the number of services that the agent has.
	known(ctx context.Context) (int, error)
	// health sends a request to a health check port of the node.
	health(port int) (status int, err error)
}

// realSite is a network namespace.
type realSite struct{ ns *netns.Namespace }

func (s realSite) dial(ctx context.Context, network string, to netip.AddrPort, timeout time.Duration) (talk, error) {
	if network == "sctp" {
		c, err := whoami.DialSCTP(ctx, s.ns, to, timeout)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	c, err := whoami.Dial(ctx, s.ns, network, to, timeout)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (s realSite) dialFrom(ctx context.Context, port uint16, to netip.AddrPort, timeout time.Duration) (talk, error) {
	c, err := whoami.DialFrom(ctx, s.ns, "tcp", &net.TCPAddr{Port: int(port)}, to, timeout)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// queryOnce connects, sends one request and closes.
func (w *world) queryOnce(client, network string, to netip.AddrPort, timeout time.Duration) (whoami.Answer, error) {
	c, err := w.sites[client].dial(w.ctx, network, to, timeout)
	if err != nil {
		return whoami.Answer{}, err
	}
	defer c.Close()
	return c.Query()
}

// realMember is a node with a real agent.
type realMember struct {
	*testbed.Node
	addr   netip.Addr // address of the host
	metric string     // metric that counts writes
}

func (m realMember) restart(ctx context.Context) error {
	if err := m.Agent.Kill(); err != nil {
		return err
	}
	start, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return m.StartAgent(start)
}

func (m realMember) writes(ctx context.Context) (float64, error) { return m.Metric(ctx, m.metric) }

func (m realMember) known(ctx context.Context) (int, error) {
	var services []struct{ Name string }
	err := m.GetJSON(ctx, "/contiv/v1/services", &services)
	return len(services), err
}

func (m realMember) health(port int) (status int, err error) {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			err = m.Do(func() error { conn, err = (&net.Dialer{}).DialContext(ctx, network, address); return err })
			return conn, err
		},
	}}
	resp, err := client.Get(fmt.Sprintf("http://%s:%d/healthz", m.addr, port))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

package services

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"contiv.dev/vswitch/test/testbed/whoami"
)

// answered is the timeout for an answer that must arrive, and retryWait the timeout for each attempt of a request that is repeated; silence is the
// time without an answer after which a packet counts as dropped. The kernel may process a rejection only after it has retransmitted the first packet
// of a connection, after a second.
const (
	answered  = 20 * time.Second
	retryWait = 800 * time.Millisecond
	silence   = 1500 * time.Millisecond
)

// expectation is "client[,client] protocol address -> outcome [as client|node]": protocol is tcp, udp, sctp or any (of the first two); an address is
// cluster, external, lb, node1 or node2 (the node's addresses for the outside), host1 or host2 (the node's addresses in Kubernetes), or one of the
// first three with a port (cluster:81). The outcome is the servers that answer, all of them and no other; "one of" servers, always the same;
// rejected; dropped; or nothing (rejected or dropped). As client: the server receives the client's own address. As node: it does not.
type expectation struct {
	text     string
	clients  []string
	networks []string
	to       string
	outcome  string
	servers  []string
	as       string
	limit    time.Duration // timeout for an answer; 0: retryWait
}

func parseExpectation(text string) (e expectation, err error) {
	e.text = text
	left, right, ok := strings.Cut(text, " -> ")
	words := strings.Fields(left)
	if !ok || len(words) != 3 {
		return e, fmt.Errorf("%q: want client protocol address -> outcome", text)
	}
	e.clients, e.to = strings.Split(words[0], ","), words[2]
	switch words[1] {
	case "any":
		e.networks = []string{"tcp", "udp"}
	case "tcp", "udp", "sctp":
		e.networks = []string{words[1]}
	default:
		return e, fmt.Errorf("%q: protocol %s", text, words[1])
	}
	right, e.as, _ = strings.Cut(right, " as ")
	e.outcome = right
	switch list, one := strings.CutPrefix(right, "one of "); {
	case right == "rejected" || right == "dropped" || right == "nothing":
	case one:
		e.outcome, e.servers = "one", strings.Split(list, ",")
	default:
		e.outcome, e.servers = "all", strings.Split(right, ",")
	}
	return e, nil
}

// destination returns the address and port for a word of an expectation.
func (w *world) destination(svc *corev1.Service, to string, family int) (netip.AddrPort, error) {
	where, port, _ := strings.Cut(to, ":")
	number := svc.Spec.Ports[0].Port
	var text string
	switch where {
	case "cluster":
		text = svc.Spec.ClusterIPs[family]
	case "external":
		text = svc.Spec.ExternalIPs[family]
	case "lb":
		text = svc.Status.LoadBalancer.Ingress[family].IP
	case "host1", "host2":
		text, number = w.addrs[where[:1]+where[4:]][family].String(), svc.Spec.Ports[0].NodePort
	case "node1", "node2":
		text, number = w.uplinks[where[4]-'1'][family].String(), svc.Spec.Ports[0].NodePort
	default:
		return netip.AddrPort{}, fmt.Errorf("what address is %s?", to)
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return netip.AddrPort{}, err
		}
		number = int32(n)
	}
	addr, err := netip.ParseAddr(text)
	return netip.AddrPortFrom(addr, uint16(number)), err
}

// meets returns the difference between an expectation and the outcome, in one family.
func (w *world) meets(svc *corev1.Service, e expectation, family int) error {
	to, err := w.destination(svc, e.to, family)
	if err != nil {
		return err
	}
	for _, client := range e.clients {
		if w.sites[client] == nil {
			return fmt.Errorf("%s: there is no client %s", e.text, client)
		}
		for _, network := range e.networks {
			if err := w.try(e, client, network, to); err != nil {
				return fmt.Errorf("%s: %s by %s: %w", e.text, client, network, err)
			}
		}
	}
	return nil
}

func (w *world) try(e expectation, client, network string, to netip.AddrPort) error {
	if e.servers == nil {
		a, err := w.queryOften(client, network, to)
		return outcome(e.outcome, a, err)
	}
	seen, tries := map[string]bool{}, 25*len(e.servers)
	for range tries {
		a, err := w.queryOnce(client, network, to, max(retryWait, e.limit))
		if err != nil {
			return err
		}
		if !slices.Contains(e.servers, a.Server) {
			return fmt.Errorf("%s answers", a.Server)
		}
		if err := w.seenAs(e.as, client, a); err != nil {
			return err
		}
		if seen[a.Server] = true; e.outcome == "all" && len(seen) == len(e.servers) {
			return nil
		}
	}
	names := slices.Sorted(maps.Keys(seen))
	if e.outcome == "one" && len(names) == 1 {
		return nil
	}
	return fmt.Errorf("%d times only %s answer", tries, names)
}

// queryOften repeats requests while there is no answer, as TCP does by itself: the rate of rejections is limited, per client and in total.
func (w *world) queryOften(client, network string, to netip.AddrPort) (a whoami.Answer, err error) {
	if network == "tcp" {
		return w.queryOnce(client, network, to, silence)
	}
	const repeats = 5
	c, err := w.sites[client].dial(w.ctx, network, to, silence/repeats)
	if err != nil {
		return a, err
	}
	defer c.Close()
	for range repeats {
		if a, err = c.Query(); !errors.Is(err, whoami.ErrDropped) {
			break
		}
	}
	return a, err
}

// outcome compares the outcome of a packet with the expected one.
func outcome(want string, a whoami.Answer, err error) error {
	got := "an answer of " + a.Server
	switch {
	case errors.Is(err, whoami.ErrRejected):
		got = "rejected"
	case errors.Is(err, whoami.ErrDropped):
		got = "dropped"
	case err != nil:
		return err
	}
	if got == want || want == "nothing" && err != nil {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.New(got)
}

// seenAs checks the client address that the server has received.
func (w *world) seenAs(as, client string, a whoami.Answer) error {
	own := slices.Contains(w.addrsOf(client), a.Client.Addr())
	if as == "client" && !own || as == "node" && own {
		return fmt.Errorf("%s sees the client as %s", a.Server, a.Client)
	}
	return nil
}

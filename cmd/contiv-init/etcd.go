package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/internal/etcdpki"
	"contiv.dev/vswitch/internal/kube"
)

// The ports of our etcd. They differ from those of the cluster's own etcd on the same machine.
const (
	etcdClientPort  = 12379
	etcdPeerPort    = 12380
	etcdMetricsPort = 12381
)

// etcdMember is the common name in the certificates of members. The agents' certificates are of the same CA, and must not be accepted as those
// of members.
const etcdMember = "contiv-etcd-member"

// The keys in the Secrets, named as in Secrets of type kubernetes.io/tls.
const (
	caCert  = "ca.crt"
	caKey   = "ca.key"
	tlsCert = "tls.crt"
	tlsKey  = "tls.key"
)

const queryAgain = 500 * time.Millisecond

// certsCommand makes the Secrets: the CA with its key for the members of etcd, a client certificate for the agents.
func certsCommand(c *common) *cobra.Command {
	var ca, client string
	cmd := &cobra.Command{
		Use:   "etcd-certs",
		Short: "Create the Secrets with etcd's CA and the agents' certificate, unless they exist",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := c.client()
			if err != nil {
				return err
			}
			return makeSecrets(cmd.Context(), k, c.namespace, ca, client)
		},
	}
	cmd.Flags().StringVar(&ca, "ca-secret", "contiv-etcd-ca", "name of the CA's Secret")
	cmd.Flags().StringVar(&client, "client-secret", "contiv-etcd-client", "name of the agents' Secret")
	return cmd
}

// makeSecrets can be repeated, and can run twice at the same time: the first CA is kept, and certificates are issued by it. Secrets that exist must
// fit each other: agents with a certificate of another CA would not connect to etcd.
func makeSecrets(ctx context.Context, k *kube.Client, namespace, caName, clientName string) error {
	ca, err := etcdpki.NewCA("contiv-etcd")
	if err != nil {
		return err
	}
	if _, err := k.CreateSecret(ctx, namespace, caName, nil, map[string][]byte{caCert: ca.Cert, caKey: ca.Key}); err != nil {
		return err
	}
	data, ok, err := k.Secret(ctx, namespace, caName)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("secret %s/%s was removed just now; run this again", namespace, caName)
	}
	ca = etcdpki.Pair{Cert: data[caCert], Key: data[caKey]}
	agent, err := ca.Issue(etcdpki.Leaf{Name: "contiv-agent", Client: true})
	if err != nil {
		return fmt.Errorf("secret %s/%s: %w", namespace, caName, err)
	}
	created, err := k.CreateSecret(ctx, namespace, clientName, nil, map[string][]byte{
		caCert: ca.Cert, tlsCert: agent.Cert, tlsKey: agent.Key,
	})
	if err != nil || created {
		return err
	}
	data, ok, err = k.Secret(ctx, namespace, clientName)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("secret %s/%s was removed just now; run this again", namespace, clientName)
	}
	if err := ca.Check(etcdpki.Pair{Cert: data[tlsCert], Key: data[tlsKey]}, data[caCert]); err != nil {
		return fmt.Errorf("secrets %s and %s in %s do not fit each other: %w; delete both and run this again, then restart all members of etcd, and the agents "+
			"(docs/security.md)", caName, clientName, namespace, err)
	}
	return nil
}

// member is a member of etcd.
type member struct {
	*common
	name    string
	addr    string
	service string
	members int
	dataDir string
	caDir   string
	tlsDir  string
	// restarted: this is not the first container of the pod.
	restarted bool
}

func etcdCommand(c *common) *cobra.Command {
	m := &member{common: c}
	cmd := &cobra.Command{
		Use:   "etcd -- ETCD [ARGUMENT...]",
		Short: "Execute etcd as a member of the vswitch's etcd cluster",
		Args:  cobra.MinimumNArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return m.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.StringVar(&m.name, "name", os.Getenv("CONTIV_POD_NAME"), "name of the member: the name of its pod")
	f.StringVar(&m.addr, "address", os.Getenv("CONTIV_POD_IP"), "address of the member")
	f.StringVar(&m.service, "service", "contiv-etcd", "service that lists all members")
	f.IntVar(&m.members, "members", 1, "number of members")
	f.StringVar(&m.dataDir, "data-dir", "/var/lib/etcd", "directory in which the member keeps its data, in a folder with its name")
	f.StringVar(&m.caDir, "ca-dir", "/etc/contiv/etcd-ca", "directory of the CA with its key")
	f.StringVar(&m.tlsDir, "tls-dir", "/run/etcd-tls", "directory for the member's own certificate")
	return cmd
}

func (m *member) run(ctx context.Context, args []string) error {
	addr, err := netip.ParseAddr(m.addr)
	if err != nil {
		return fmt.Errorf("--address: %w", err)
	}
	if err := m.certify(addr); err != nil {
		return err
	}
	j, err := m.joiner(addr)
	if err != nil {
		return err
	}
	dir, ok, err := m.data(ctx, j)
	if err != nil {
		return err
	}
	// The data of a member has the addresses of the others.
	var cluster []string
	if !ok {
		if cluster, err = m.cluster(ctx, addr, j); err != nil {
			return err
		}
	}
	// The manifest's own arguments come last and take precedence.
	return become(slices.Concat(args[:1], m.arguments(addr, dir, cluster), args[1:]), nil)
}

// certify issues the member's certificate. If there is one, an earlier container of the same pod has issued it: its directory is empty in a new pod.
func (m *member) certify(addr netip.Addr) error {
	_, err := os.Stat(filepath.Join(m.tlsDir, tlsCert))
	m.restarted = err == nil
	cert, err := os.ReadFile(filepath.Join(m.caDir, caCert))
	if err != nil {
		return fmt.Errorf("etcd CA: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(m.caDir, caKey))
	if err != nil {
		return fmt.Errorf("etcd CA: %w", err)
	}
	own, err := etcdpki.Pair{Cert: cert, Key: key}.Issue(etcdpki.Leaf{
		Name: etcdMember, Servers: []string{"localhost", m.name},
		Addrs: []netip.Addr{addr, netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}, Client: true,
	})
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{caCert: cert, tlsCert: own.Cert, tlsKey: own.Key} {
		if err := os.WriteFile(filepath.Join(m.tlsDir, name), data, 0o600); err != nil {
			return fmt.Errorf("certificate of %s: %w", m.name, err)
		}
	}
	return nil
}

// arguments returns the arguments of etcd with its data in dir.
func (m *member) arguments(addr netip.Addr, dir string, cluster []string) []string {
	file := func(name string) string { return filepath.Join(m.tlsDir, name) }
	client, peer := etcdURL(addr, etcdClientPort), etcdURL(addr, etcdPeerPort)
	args := []string{
		"--name=" + m.name, "--data-dir=" + dir,
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		fmt.Sprintf("--listen-metrics-urls=http://127.0.0.1:%d", etcdMetricsPort),
		"--client-cert-auth", "--trusted-ca-file=" + file(caCert), "--cert-file=" + file(tlsCert), "--key-file=" + file(tlsKey),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + file(caCert), "--peer-cert-file=" + file(tlsCert),
		"--peer-key-file=" + file(tlsKey), "--peer-cert-allowed-cn=" + etcdMember,
		// On a node with several addresses a peer may connect from any of them; its certificate identifies it.
		"--peer-skip-client-san-verification",
		"--auto-compaction-mode=periodic", "--auto-compaction-retention=1h", "--log-level=warn",
	}
	return append(args, cluster...)
}

func etcdURL(addr netip.Addr, port uint16) string {
	return "https://" + netip.AddrPortFrom(addr, port).String()
}

// wanted is the condition that awaitEndpoints waits for: n pods of a service, with one address each.
type wanted struct {
	service string
	n       int
	// away is how long the API server may not answer at all; 0 means forever.
	away time.Duration
}

// awaitEndpoints waits until the wanted number of endpoints exists.
func awaitEndpoints(ctx context.Context, c *common, k *kube.Client, w wanted) ([]kube.Endpoint, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	reported, answered := "", time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
		}
		query, cancel := context.WithTimeout(ctx, queryTimeout)
		all, err := k.Endpoints(query, c.namespace, w.service)
		cancel()
		if all = onePerPod(all, netip.Addr{}); err == nil && len(all) >= w.n {
			return all, nil
		}
		why := fmt.Sprintf("service %s/%s has %d of %d members", c.namespace, w.service, len(all), w.n)
		if err != nil {
			why = err.Error()
		} else {
			answered = time.Now()
		}
		if w.away > 0 && time.Since(answered) >= w.away {
			return nil, err
		}
		if why != reported {
			c.log.Info("waiting for the addresses of etcd", "reason", why)
		}
		reported = why
		timer.Reset(queryAgain)
	}
}

// onePerPod returns the first address of each pod: of the address family of like, if like is valid.
func onePerPod(all []kube.Endpoint, like netip.Addr) []kube.Endpoint {
	var out []kube.Endpoint
	for _, e := range all {
		known := slices.ContainsFunc(out, func(o kube.Endpoint) bool { return o.Pod == e.Pod })
		if !known && (!like.IsValid() || like.Is4() == e.Addr.Is4()) {
			out = append(out, e)
		}
	}
	return out
}

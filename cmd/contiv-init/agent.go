package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/internal/atomicfile"
)

// away is how long requests to an API server that does not respond are repeated when the addresses of etcd from the last start are stored: in
// the meantime the pods of this node have no network agent, and members of etcd do not move while the API server is down.
const away = time.Second

// starter starts the agent with the addresses of etcd.
type starter struct {
	*common
	service string
	members int
	maxWait time.Duration
	cache   string
	runDir  string
}

func agentCommand(c *common) *cobra.Command {
	s := &starter{common: c}
	cmd := &cobra.Command{
		Use:   "agent -- AGENT [ARGUMENT...]",
		Short: "Find etcd through the API server, and execute the agent",
		Args:  cobra.MinimumNArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return s.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.StringVar(&s.service, "service", "contiv-etcd", "service that lists etcd's members")
	f.IntVar(&s.members, "members", 1, "number of etcd's members; 0: do not search, because the agent has the addresses")
	f.DurationVar(&s.maxWait, "timeout", 10*time.Second, "time to wait for all members before the "+
		"agent starts with the addresses of the last start, or with fewer members")
	f.StringVar(&s.cache, "cache", "/var/lib/contiv/etcd-endpoints", "file with the members' addresses of the last start")
	f.StringVar(&s.runDir, "empty-after-reboot", "", "run directory of the agent that survives reboots (Windows): emptied if it was written before the last boot")
	return cmd
}

func (s *starter) run(ctx context.Context, args []string) error {
	if s.runDir != "" {
		boot, err := bootID()
		if err == nil {
			err = emptyAfterReboot(s.runDir, boot)
		}
		if err != nil {
			return err
		}
	}
	var env []string
	if s.members > 0 {
		endpoints, err := s.endpoints(ctx)
		if err != nil {
			return err
		}
		env = s.environment(endpoints)
	}
	return become(args, env)
}

// environment returns the agent's variables. With the service the agent finds members that move while it runs.
func (s *starter) environment(endpoints string) []string {
	return []string{"CONTIV_ETCD_ENDPOINTS=" + endpoints, fmt.Sprintf("CONTIV_ETCD_SERVICE=%s/%s:%d", s.namespace, s.service, etcdClientPort)}
}

// endpoints requests etcd's addresses from the API server. If it does not respond, or not all members exist, endpoints returns the addresses of
// the last start: a node must start without the API server. Without both it waits.
func (s *starter) endpoints(ctx context.Context) (string, error) {
	k, err := s.client()
	if err != nil {
		return "", err
	}
	last, _ := os.ReadFile(s.cache) // does not exist before the first start
	want := wanted{service: s.service, n: s.members}
	if len(last) > 0 {
		want.away = away
	}
	waiting, cancel := context.WithTimeout(ctx, s.maxWait)
	defer cancel()
	all, err := awaitEndpoints(waiting, s.common, k, want)
	if err != nil && ctx.Err() == nil {
		if len(last) > 0 {
			s.log.Warn("using the etcd addresses of the last start, because the current ones cannot be read", "endpoints", string(last), "error", err)
			return string(last), nil
		}
		all, err = awaitEndpoints(ctx, s.common, k, wanted{service: s.service, n: 1})
	}
	if err != nil {
		return "", fmt.Errorf("addresses of etcd: %w", err)
	}
	var urls []string
	for _, e := range all {
		urls = append(urls, etcdURL(e.Addr, etcdClientPort))
	}
	text := strings.Join(urls, ",")
	if err := atomicfile.Write(s.cache, []byte(text), 0o600); err != nil {
		s.log.Warn("the addresses of etcd could not be stored; the next start needs the API server", "error", err)
	}
	return text, nil
}

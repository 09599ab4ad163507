package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"contiv.dev/vswitch/internal/cniapi"
)

// plugin implements the commands of CNI. Tests replace its access to the agent.
type plugin struct {
	query     func(ctx context.Context, c *config, maxWait time.Duration, req *cniapi.Request) (*cniapi.Result, error)
	appendLog func(path, line string) error
	stdout    io.Writer
}

// shortWait is the timeout while the agent does not respond, except for ADD: an ADD survives a restart of the agent, and the runtime repeats
// all other commands.
const shortWait = 5 * time.Second

func queryAgent(ctx context.Context, c *config, maxWait time.Duration, req *cniapi.Request) (*cniapi.Result, error) {
	client := &cniapi.Client{Socket: c.AgentSocket, RetryFor: maxWait}
	return client.Do(ctx, req)
}

func (p *plugin) funcs(ctx context.Context) skel.CNIFuncs {
	return skel.CNIFuncs{
		Add:    func(args *skel.CmdArgs) error { return p.add(ctx, args) },
		Del:    func(args *skel.CmdArgs) error { return p.del(ctx, args) },
		Check:  func(args *skel.CmdArgs) error { return p.check(ctx, args) },
		GC:     func(args *skel.CmdArgs) error { return p.gc(ctx, args) },
		Status: func(args *skel.CmdArgs) error { return p.status(ctx, args) },
	}
}

func (p *plugin) add(ctx context.Context, args *skel.CmdArgs) error {
	c, req, err := attachmentRequest(cniapi.Add, args)
	if err != nil {
		return err
	}
	if err := checkNetns(args); err != nil {
		return err
	}
	res, err := p.do(ctx, c, time.Duration(c.Timeout), req)
	if err != nil {
		return err
	}
	out, err := mergeResult(c.PrevResult, res).GetAsVersion(c.CNIVersion)
	if err != nil {
		return types.NewError(types.ErrIncompatibleCNIVersion, "result cannot be written as version "+c.CNIVersion, err.Error())
	}
	if err := out.PrintTo(p.stdout); err != nil {
		return types.NewError(types.ErrIOFailure, "write result", err.Error())
	}
	return nil
}

func (p *plugin) del(ctx context.Context, args *skel.CmdArgs) error {
	c, req, err := attachmentRequest(cniapi.Del, args)
	if err != nil {
		return err
	}
	_, err = p.do(ctx, c, shortWait, req)
	return err
}

func (p *plugin) check(ctx context.Context, args *skel.CmdArgs) error {
	c, req, err := attachmentRequest(cniapi.Check, args)
	if err != nil {
		return err
	}
	if c.PrevResult == nil {
		return invalid("prevResult", "is missing, CHECK needs it")
	}
	req.PrevResult = c.PrevResult.forAgent()
	_, err = p.do(ctx, c, shortWait, req)
	return err
}

func (p *plugin) gc(ctx context.Context, args *skel.CmdArgs) error {
	c, err := parseConfig(cniapi.GC, args.StdinData)
	if err != nil {
		return err
	}
	valid, err := c.validAttachments()
	if err != nil {
		return err
	}
	req := &cniapi.Request{Command: cniapi.GC, Network: c.network()}
	for _, a := range valid {
		req.ValidAttachments = append(req.ValidAttachments, cniapi.AttachmentRef{ContainerID: a.ContainerID, IfName: a.IfName})
	}
	_, err = p.do(ctx, c, shortWait, req)
	return err
}

// status runs every few seconds and must report the current state at once: it does not wait for an agent that does not respond.
func (p *plugin) status(ctx context.Context, args *skel.CmdArgs) error {
	c, err := parseConfig(cniapi.Status, args.StdinData)
	if err != nil {
		return err
	}
	c.Timeout = min(c.Timeout, duration(shortWait))
	_, err = p.do(ctx, c, 0, &cniapi.Request{Command: cniapi.Status, Network: c.network()})
	return err
}

// attachmentRequest returns the request of a command for one attachment.
func attachmentRequest(command cniapi.Command, args *skel.CmdArgs) (*config, *cniapi.Request, error) {
	c, err := parseConfig(command, args.StdinData)
	if err != nil {
		return nil, nil, err
	}
	pod, err := parseArgs(args.Args)
	if err != nil && command != cniapi.Del {
		return nil, nil, err
	} else if err != nil {
		pod = cniapi.Pod{}
	}
	return c, &cniapi.Request{
		Command:     command,
		Network:     c.network(),
		ContainerID: args.ContainerID,
		IfName:      args.IfName,
		Netns:       args.Netns,
		Pod:         pod,
	}, nil
}

// checkNetns rejects paths that are not network namespaces, and the host's own namespace, before the command changes anything; skel checks
// this only afterwards.
func checkNetns(args *skel.CmdArgs) error {
	if handled, err := checkPlatformNetns(args.Netns); handled {
		return err
	}
	theirs, err := os.Stat(args.Netns)
	if errors.Is(err, fs.ErrNotExist) {
		return types.NewError(types.ErrInvalidNetNS, "network namespace "+args.Netns+" does not exist", "")
	}
	if err == nil && !isNamespace(args.Netns) {
		return types.NewError(types.ErrInvalidNetNS, args.Netns+" is not a network namespace", "")
	}
	if err != nil || args.NetnsOverride == "1" || strings.EqualFold(args.NetnsOverride, "true") {
		return nil
	}
	if ours, err := os.Stat("/proc/self/ns/net"); err == nil && os.SameFile(ours, theirs) {
		return types.NewError(types.ErrInvalidNetNS, "network namespace "+args.Netns+" is the host's", "")
	}
	return nil
}

// do sends the request to the agent with the configured timeout and converts its error to one of CNI's.
func (p *plugin) do(ctx context.Context, c *config, maxWait time.Duration, req *cniapi.Request) (*cniapi.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.Timeout))
	defer cancel()
	start := time.Now()
	res, err := p.query(ctx, c, maxWait, req)
	if err != nil {
		err = cniError(req, err)
	}
	if c.LogFile == "" {
		return res, err
	}
	if logErr := p.appendLog(c.LogFile, logLine(start, req, err)); logErr != nil {
		fmt.Fprintln(os.Stderr, "contiv-cni: logFile:", logErr) // not a reason to fail the pod
	}
	return res, err
}

func cniError(req *cniapi.Request, err error) *types.Error {
	var answer *cniapi.Error
	if errors.As(err, &answer) {
		return types.NewError(answer.Code, answer.Msg, answer.Details)
	}
	var away *cniapi.UnreachableError
	switch {
	case errors.As(err, &away) && req.Command == cniapi.Status:
		return types.NewError(cniapi.CodeNotAvailable, err.Error(), "")
	case errors.As(err, &away) && errors.Is(err, fs.ErrPermission):
		return types.NewError(types.ErrIOFailure, req.String()+": "+err.Error(), "contiv-cni has to run as root")
	case errors.As(err, &away):
		return types.NewError(types.ErrTryAgainLater, req.String()+": "+err.Error(), "")
	}
	return types.NewError(types.ErrInternal, req.String()+": "+err.Error(), "")
}

func logLine(start time.Time, req *cniapi.Request, err error) string {
	outcome := "ok"
	if err != nil {
		outcome = strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return fmt.Sprintf("%s %s %s netns %q: %s\n", start.UTC().Format("2006-01-02T15:04:05.000Z"),
		time.Since(start).Round(time.Microsecond), req, req.Netns, outcome)
}

// appendLine writes the line in one call, so that lines of several pods do not mix.
func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

package controller

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/plugins/controller/api"
)

// TestScripts runs testdata/*.txtar: each is a list of commands with the controller's results. With -update the results are written to the
// files; commit only differences that you understand. Commands:
//
//	handlers NAME...                      (first line)
//	db K=V...                             DBResync
//	item K=V | item K                     KubeStateChange: set, delete
//	pod K=V | unpod K                     RevertOnFailure, BestEffortIgnoreErrors (reverse)
//	ext SOURCE K=V... | extresync ...     external configuration ("K=" removes)
//	resync full|upstream|downstream       ResyncRequest
//	reconnect REASON
//	fail HANDLER OP error|abort|fatal|panic   from now on, OP is update, resync or revert
//	commit refuse|panic|KEY retriable|KEY permanent|KEY revertfail
//	works                                 no more failures
//	tick DURATION                         moves the clock
//	show                                  the dataplane and the readiness
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.Files) != 2 {
		t.Fatalf("%s: want the files \"script\" and \"want\"", file)
	}
	sc := &script{t: t}
	for line := range strings.Lines(string(archive.Files[0].Data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		sc.run(strings.Fields(line))
	}
	got := sc.out.String()
	if flag.Lookup("update").Value.String() == "true" {
		archive.Files[1].Data = []byte(got)
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := string(archive.Files[1].Data); got != want {
		t.Errorf("outcome differs (go test -update rewrites it); got:\n%s", got)
	}
}

type script struct {
	t     *testing.T
	s     *sim
	out   strings.Builder
	shown uint64
}

func (sc *script) run(words []string) {
	fmt.Fprintf(&sc.out, "> %s\n", strings.Join(words, " "))
	cmd, args := words[0], words[1:]
	if cmd == "handlers" {
		sc.s = newSim(sc.t, nil, args...)
		return
	}
	s := sc.s
	switch cmd {
	case "db":
		s.push(dbResync(pairs(args)))
	case "item":
		key, value, _ := strings.Cut(args[0], "=")
		s.push(kubeChange(key, value))
	case "pod", "unpod":
		key, value, _ := strings.Cut(args[0], "=")
		ev := addPod(s, key, value)
		if cmd == "unpod" {
			ev = deletePod(s, key)
		}
		then := ev.done
		ev.done = func(err error) { fmt.Fprintf(&sc.out, "done: %v\n", err); then(err) }
		s.push(ev)
	case "ext", "extresync":
		kvs := api.KeyValuePairs{}
		for k, v := range pairs(args[1:]) {
			if kvs[k] = nil; v != "" {
				kvs[k] = str(v)
			}
		}
		if cmd == "ext" {
			s.push(NewExternalConfigChange(args[0], kvs, false))
		} else {
			s.push(NewExternalConfigResync(args[0], kvs, false))
		}
	case "resync":
		methods := map[string]api.EventMethodType{
			"full": api.FullResync, "upstream": api.UpstreamResync, "downstream": api.DownstreamResync}
		s.push(&ResyncRequest{waiter: newWaiter(), method: methods[args[0]]})
	case "reconnect":
		if err := s.c.DataplaneReconnected(strings.Join(args, " ")); err != nil {
			sc.t.Fatal(err)
		}
		s.run()
	case "tick":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			sc.t.Fatal(err)
		}
		s.advance(d)
	case "fail", "commit", "works":
		sc.faults(cmd, args)
	case "show":
		ok, reason := s.c.Ready()
		fmt.Fprintf(&sc.out, "ready: %v %s\n%s", ok, reason, s.applier.dump())
	default:
		sc.t.Fatalf("unknown command %q", cmd)
	}
	sc.print()
}

func (sc *script) faults(cmd string, args []string) {
	s := sc.s
	switch cmd {
	case "works":
		s.fault, s.applier.fault = nil, nil
	case "fail":
		s.fault = func(h *fakePlugin, op string, _ api.Event) error {
			if h.name != args[0] || op != args[1] {
				return nil
			}
			switch err := errors.New("injected"); args[2] {
			case "abort":
				return api.NewAbortEventError(err)
			case "fatal":
				return api.NewFatalError(err)
			case "panic":
				panic(err)
			default:
				return err
			}
		}
	case "commit":
		s.applier.fault = func(*txn.Txn) fault {
			switch args[0] {
			case "refuse":
				return fault{refuse: errors.New("not connected")}
			case "panic":
				return fault{panics: true}
			}
			f := fault{key: args[0], retriable: args[1] == "retriable"}
			if args[1] == "revertfail" {
				f.revertErr = errors.New("undo failed")
			}
			return f
		}
	}
}

// print writes the events that were handled since the last call.
func (sc *script) print() {
	if sc.s == nil {
		return
	}
	for _, r := range sc.s.records() {
		if r.SeqNum <= sc.shown {
			continue
		}
		sc.shown = r.SeqNum
		if r.Name == "Verification Resync" && r.Error == "" {
			continue
		}
		fmt.Fprintf(&sc.out, "#%d %s", r.SeqNum, r.body())
	}
}

func pairs(args []string) map[string]string {
	kvs := map[string]string{}
	for _, arg := range args {
		k, v, _ := strings.Cut(arg, "=")
		kvs[k] = v
	}
	return kvs
}

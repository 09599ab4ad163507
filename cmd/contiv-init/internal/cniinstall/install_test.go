package cniinstall

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/containernetworking/cni/libcni"
)

func install(t *testing.T) Install {
	t.Helper()
	dir := t.TempDir()
	i := Install{
		Source: filepath.Join(dir, "src"), Binaries: []string{"contiv-cni"}, BinDir: filepath.Join(dir, "bin"),
		ConfDir: filepath.Join(dir, "net.d"), Conflist: "10-contiv.conflist",
		List: List{Version: "1.0.0", AgentSocket: "/run/contiv/cni.sock", Portmap: true},
	}
	for _, d := range []string{i.Source, i.BinDir, i.ConfDir} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestBinaryIsReplacedWhileItRuns: a plugin that is wiring a pod continues to run; the next one is the new binary; nothing is written if
// nothing has changed.
func TestBinaryIsReplacedWhileItRuns(t *testing.T) {
	i := install(t)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("no sleep in PATH")
	}
	old, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(i.Source, "contiv-cni"), string(old))
	if changed, err := i.PutBinaries(); err != nil || len(changed) != 1 {
		t.Fatalf("%v, %v", changed, err)
	}
	running := exec.Command(filepath.Join(i.BinDir, "contiv-cni"), "60")
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = running.Process.Kill(); _ = running.Wait() }()
	write(t, filepath.Join(i.Source, "contiv-cni"), "#!/bin/sh\necho new\n")
	if changed, err := i.PutBinaries(); err != nil || len(changed) != 1 {
		t.Fatalf("%v, %v", changed, err)
	}
	if err := running.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the running plugin: %v", err)
	}
	if out, err := exec.Command(filepath.Join(i.BinDir, "contiv-cni")).Output(); err != nil || string(out) != "new\n" {
		t.Errorf("the installed plugin says %q, %v", out, err)
	}
	if changed, err := i.PutBinaries(); err != nil || len(changed) != 0 {
		t.Errorf("again: %v, %v", changed, err)
	}
}

// TestConflistIsAlwaysWhole: a process that reads the list while it is replaced reads the old one or the new one, and finds no other file that
// a runtime would use.
func TestConflistIsAlwaysWhole(t *testing.T) {
	i := install(t)
	if changed, err := i.PutConflist(); err != nil || !changed {
		t.Fatalf("%v, %v", changed, err)
	}
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for n := range 200 {
			i.List.AgentSocket = fmt.Sprintf("/run/contiv/%0*d", 1+n*20, n)
			if _, err := i.PutConflist(); err != nil {
				t.Error(err)
			}
		}
	})
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		files, err := libcni.ConfFiles(i.ConfDir, []string{".conf", ".conflist", ".json"})
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %v", files, err)
		}
		if _, err := libcni.ConfListFromFile(files[0]); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if changed, err := i.PutConflist(); err != nil || changed {
		t.Errorf("again: %v, %v", changed, err)
	}
}

// TestConflistIsWhatLibcniTakes: libcni accepts the list, and a current runtime sends STATUS with version 1.1.0.
func TestConflistIsWhatLibcniTakes(t *testing.T) {
	i := install(t)
	log := filepath.Join(t.TempDir(), "log")
	plugin := fmt.Sprintf(`#!/bin/sh
echo "$CNI_COMMAND $(cat)" >> %s
case $CNI_COMMAND in VERSION) echo '{"cniVersion":"1.1.0","supportedVersions":["1.0.0","1.1.0"]}';; esac
`, log)
	write(t, filepath.Join(i.BinDir, "contiv-cni"), plugin)
	write(t, filepath.Join(i.BinDir, "portmap"), strings.ReplaceAll(plugin, log, "/dev/null"))
	if _, err := i.PutConflist(); err != nil {
		t.Fatal(err)
	}
	list, err := libcni.ConfListFromFile(filepath.Join(i.ConfDir, i.Conflist))
	if err != nil {
		t.Fatal(err)
	}
	if list.CNIVersion != "1.1.0" || len(list.Plugins) != 2 || list.Name != "contiv" {
		t.Errorf("libcni reads %+v", list)
	}
	if err := libcni.NewCNIConfig([]string{i.BinDir}, nil).GetStatusNetworkList(context.Background(), list); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(log)
	if err != nil || !bytes.Contains(said, []byte("STATUS {")) || !bytes.Contains(said,
		[]byte(`"agentSocket":"/run/contiv/cni.sock"`)) {
		t.Errorf("the plugin was told %s, %v", said, err)
	}
}

// TestRemove: our files are removed, and files that others may use stay.
func TestRemove(t *testing.T) {
	i := install(t)
	for _, name := range []string{"contiv-cni", "portmap"} {
		write(t, filepath.Join(i.BinDir, name), "x")
	}
	write(t, filepath.Join(i.ConfDir, "20-other.conflist"), "{}")
	if _, err := i.PutConflist(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to remove
		if err := i.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(i.BinDir), "*", "*"))
	if err != nil || len(left) != 2 || filepath.Base(left[0]) != "portmap" || filepath.Base(left[1]) != "20-other.conflist" {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestFaults: a full disk, a missing binary and an unsupported version are reported by name.
func TestFaults(t *testing.T) {
	i := install(t)
	if _, err := i.PutBinaries(); err == nil || !strings.Contains(err.Error(), "contiv-cni") {
		t.Errorf("missing binary: %v", err)
	}
	i.ConfDir = "/dev/null/net.d"
	if _, err := i.PutConflist(); err == nil || !strings.Contains(err.Error(), "/dev/null/net.d") {
		t.Errorf("impossible directory: %v", err)
	}
	if err := (List{Version: "9.9", AgentSocket: "/x"}).Validate(); err == nil {
		t.Error("version 9.9 is taken")
	}
	if err := (List{Version: "1.0.0", AgentSocket: "x"}).Validate(); err == nil {
		t.Error("a relative socket is taken")
	}
}

// TestMasqueradeAll: clients of host ports lose their address only if the option is set. test/kube tests its effect on packets.
func TestMasqueradeAll(t *testing.T) {
	for _, all := range []bool{false, true} {
		text, err := List{Version: "1.0.0", AgentSocket: "/a.sock", Portmap: true, MasqueradeAll: all}.Render()
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Plugins []struct {
				Type    string
				MasqAll bool
			}
		}
		if err := json.Unmarshal(text, &list); err != nil || len(list.Plugins) != 2 || list.Plugins[1].MasqAll != all {
			t.Errorf("%t: %v\n%s", all, err, text)
		}
	}
}

// TestNotExecutable: a plugin that exists, but that the runtime cannot execute, is installed again.
func TestNotExecutable(t *testing.T) {
	i := install(t)
	write(t, filepath.Join(i.Source, "contiv-cni"), "#!/bin/sh\n")
	if _, err := i.PutBinaries(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(i.BinDir, "contiv-cni")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	changed, err := i.PutBinaries()
	if info, statErr := os.Stat(path); err != nil || statErr != nil || len(changed) != 1 || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v, %v", changed, err, info)
	}
}

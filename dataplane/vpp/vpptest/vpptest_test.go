package vpptest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFind(t *testing.T) {
	t.Setenv("VPP_PREFIX", t.TempDir())
	if bin, ok := Find(); ok {
		t.Errorf("found %s in an empty prefix", bin)
	}
	_, err := Launch(t.Context(), Options{})
	if !errors.Is(err, ErrNoVPP) || !strings.Contains(err.Error(), "real VPP not found (VPP_PREFIX or PATH): ") {
		t.Error(err)
	}
	skipped := t.Run("skips", func(t *testing.T) { Start(t, Options{}) })
	if !skipped {
		t.Error("Start must skip, not fail")
	}
}

func TestConfig(t *testing.T) {
	prefix := t.TempDir()
	plugins := filepath.Join(prefix, "lib", "x86_64-linux-gnu", "vpp_plugins")
	if err := os.MkdirAll(plugins, 0o755); err != nil {
		t.Fatal(err)
	}
	opts := Options{Workers: 2, PerNodeCounters: true, HeapMB: 128, Buffers: 1000, Config: "logging { default-log-level debug }\n"}
	opts.setDefaults()
	v := &VPP{opts: opts, bin: filepath.Join(prefix, "bin", "vpp"), dir: "/tmp/vpp-x", prefix: "p"}
	for _, want := range []string{
		"nodaemon", "socket-name /tmp/vpp-x/api.sock", "path " + plugins, "page-size default", "buffers-per-numa 1000",
		"main-heap-size 128M", "workers 2", "per-node-counters on", "api-segment {\n  prefix p\n", "plugin default { disable }",
		"linux_cp_plugin.so { enable }", "logging {",
	} {
		if !strings.Contains(v.config(), want) {
			t.Errorf("no %q in\n%s", want, v.config())
		}
	}
	v.opts.FewPlugins = []string{"acl"}
	if c := v.config(); !strings.Contains(c, "plugin default { disable }\n  plugin acl_plugin.so { enable }") {
		t.Error(c)
	}
}

func TestInstances(t *testing.T) {
	a := Start(t, Options{FewPlugins: []string{}})
	b := Start(t, Options{FewPlugins: []string{}})
	if a.PID() == b.PID() || a.PID() == 0 {
		t.Error(a.PID(), b.PID())
	}
	out, err := a.CLI("show version verbose")
	if err != nil || !strings.Contains(out, fmt.Sprint(a.PID())) {
		t.Error(out, err)
	}
	if _, err := a.CLI("create loopback interface"); err != nil {
		t.Error(err)
	}
	if err := a.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, err := a.CLI("show interface"); err != nil || strings.Contains(out, "loop0") {
		t.Error(out, err)
	}
	a.Term()
	if a.PID() != 0 {
		t.Error("runs after Term")
	}
	if err := a.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if err := a.Run(t.Context()); err == nil {
		t.Error("ran twice")
	}
	dir, prefix := b.Dir(), b.prefix
	b.Stop()
	b.Stop()
	if _, err := os.Stat(dir); err == nil {
		t.Error("left", dir)
	}
	if shm, _ := filepath.Glob("/dev/shm/" + prefix + "*"); len(shm) != 0 {
		t.Error("left", shm)
	}
}

func TestBrokenConfig(t *testing.T) {
	if _, ok := Find(); !ok {
		t.Skip(ErrNoVPP)
	}
	_, err := Launch(t.Context(), Options{FewPlugins: []string{}, Config: "nonsense { }\n"})
	if err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("the error must show VPP's complaint: %v", err)
	}
}

// The next instance that starts removes the leftovers of a killed test.
func TestReap(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "vpp-")
	if err != nil {
		t.Fatal(err)
	}
	orphan := exec.Command("sh", "-c", "sleep 60; true", filepath.Join(dir, "startup.conf"))
	orphan.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	owner := exec.Command("true")
	if err := owner.Run(); err != nil {
		t.Fatal(err)
	}
	note := fmt.Sprintf("%d %d\n", owner.Process.Pid, orphan.Process.Pid)
	if err := os.WriteFile(filepath.Join(dir, "owner"), []byte(note), 0o644); err != nil {
		t.Fatal(err)
	}
	reap()
	if _, err := os.Stat(dir); err == nil {
		t.Error("left", dir)
	}
	if err := orphan.Wait(); err == nil {
		t.Error("the orphan ended by itself")
	}
	_ = syscall.Kill(-orphan.Process.Pid, syscall.SIGKILL) // the shell's child, sleep
}

func TestVhostshim(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for range 2 {
		lib, err := Vhostshim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(lib); err != nil {
			t.Error(err)
		}
	}
}

// Sources of the plugin that do not compile fail the tests. Tests are skipped only if the machine lacks the compiler or
// VPP's headers.
func TestBrokenPlugin(t *testing.T) {
	source := t.TempDir()
	makefile, err := os.ReadFile("../plugin/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(source, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("Makefile", string(makefile))
	write("core/broken.c", "this does not compile\n")
	prefix := filepath.Join(source, "prefix")
	out := "OUT=" + filepath.Join(source, "contiv_plugin.so")
	if err := build(t.Context(), source, out, "VPP_PREFIX="+prefix); !errors.Is(err, errNoPlugin) {
		t.Errorf("without VPP's headers: %v", err)
	}
	write("prefix/include/vnet/vnet.h", "")
	write("prefix/include/vpp/app/version.h", "#define VPP_BUILD_VER \"25.10-release\"\n")
	if err := build(t.Context(), source, out, "VPP_PREFIX="+prefix); err == nil || errors.Is(err, errNoPlugin) || !strings.Contains(err.Error(), "broken.c") {
		t.Errorf("sources that do not compile: %v", err)
	}
}

package main

import (
	"archive/tar"
	"bytes"
	"debug/pe"
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/imagepack"
	"contiv.dev/vswitch/test/testbed/matrix"
)

// TestWindowsImage checks that the image of our programs has one base layer that fits both architectures' rules: everything is below Files,
// the hives that Windows requires exist, and the entry point is at the path where a host process has the image.
func TestWindowsImage(t *testing.T) {
	matrix.Only(t)   // compiling the agent takes minutes on a new machine; test/arch checks its types in any case
	t.Chdir("../..") // make runs it there
	for arch, machine := range map[string]uint16{"amd64": pe.IMAGE_FILE_MACHINE_AMD64, "arm64": pe.IMAGE_FILE_MACHINE_ARM64} {
		t.Run(arch, func(t *testing.T) {
			out := t.TempDir()
			if err := run(out, arch, stamp{"test", "c0ffee"}, []string{"agent-windows"}); err != nil {
				t.Fatal(err)
			}
			parts := contents(t, filepath.Join(out, "agent-windows.tar"))
			checkWindowsConfig(t, parts, arch)
			files := contentsOf(t, layerOf(t, parts))
			var programs []string
			for name, data := range files {
				if !strings.HasPrefix(name, windowsRoot) {
					t.Errorf("%s is not below %s: Windows does not unpack it", name, windowsRoot)
				}
				if strings.HasSuffix(name, "/") || !strings.HasSuffix(name, ".exe") {
					continue
				}
				programs = append(programs, strings.TrimPrefix(name, windowsRoot))
				program, err := pe.NewFile(bytes.NewReader(data))
				if err != nil || program.Machine != machine || !bytes.Contains(data, []byte("c0ffee")) {
					t.Errorf("%s: %v, not a program for %s of commit c0ffee", name, err, arch)
				}
			}
			slices.Sort(programs)
			if want := []string{"contiv-agent.exe", "contiv-cni.exe", "contiv-init.exe", "contiv-netctl.exe"}; !slices.Equal(programs, want) {
				t.Errorf("programs %q, want %q", programs, want)
			}
			for _, hive := range []string{"DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"} {
				name := windowsRoot + "Windows/System32/config/" + hive
				if got := rootOfHive(t, files[name]); got != hive {
					t.Errorf("%s: root key %q", name, got)
				}
			}
		})
	}
}

// TestWindowsLayout makes the checks of TestWindowsImage for the image's layout, without compiling the programs.
func TestWindowsLayout(t *testing.T) {
	image, err := windowsImageOf([]imagepack.File{{Path: binDir + "contiv-agent.exe", Data: []byte("MZ"), Mode: 0o755}})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range image.Files {
		if !strings.HasPrefix(f.Path, windowsRoot) {
			t.Errorf("%s is not below %s: Windows does not unpack it", f.Path, windowsRoot)
		}
		files[f.Path] = f.Data
	}
	if image.OS != "windows" || !slices.Equal(image.Entrypoint, []string{"C:/hpc/contiv-agent.exe"}) || string(files[windowsRoot+"contiv-agent.exe"]) != "MZ" {
		t.Errorf("system %q, entry point %q, files %q", image.OS, image.Entrypoint, slices.Sorted(maps.Keys(files)))
	}
	for _, hive := range []string{"DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"} {
		if got := rootOfHive(t, files[windowsRoot+"Windows/System32/config/"+hive]); got != hive {
			t.Errorf("%s: root key %q", hive, got)
		}
	}
}

func checkWindowsConfig(t *testing.T, parts map[string][]byte, arch string) {
	t.Helper()
	for name, data := range parts {
		if !strings.HasSuffix(name, ".json") || name == "manifest.json" {
			continue
		}
		var c struct {
			OS, Architecture string
			Config           struct {
				Entrypoint, Env []string
				WorkingDir      string
			}
		}
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		if c.OS != "windows" || c.Architecture != arch || !slices.Equal(c.Config.Entrypoint, []string{"C:/hpc/contiv-agent.exe"}) ||
			!slices.Contains(c.Config.Env, `PATH=C:\Windows\system32;C:\Windows;C:\hpc;`) || c.Config.WorkingDir != "" {
			t.Errorf("configuration %s", data)
		}
		return
	}
	t.Error("the image has no configuration")
}

// contents returns the files of a tar archive.
func contents(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	return contentsOf(t, data)
}

func contentsOf(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func layerOf(t *testing.T, parts map[string][]byte) []byte {
	t.Helper()
	for name, data := range parts {
		if strings.HasSuffix(name, "layer.tar") {
			return data
		}
	}
	t.Fatal("the image has no layer")
	return nil
}

// rootOfHive parses a registry hive as Windows does, and returns the name of its root key.
func rootOfHive(t *testing.T, data []byte) string {
	t.Helper()
	u32 := binary.LittleEndian.Uint32
	if len(data) != hiveHeader+hiveBin || string(data[:4]) != "regf" || u32(data[4:]) != u32(data[8:]) {
		t.Fatalf("%d bytes are not a hive", len(data))
	}
	var sum uint32
	for i := 0; i < 508; i += 4 {
		sum ^= u32(data[i:])
	}
	if sum != u32(data[508:]) {
		t.Errorf("checksum %#x, want %#x", u32(data[508:]), sum)
	}
	bin := data[hiveHeader:]
	if string(bin[:4]) != "hbin" || u32(bin[8:]) != uint32(len(bin)) {
		t.Fatal("the hive has no bin")
	}
	used := map[string][]byte{} // cells by their kind
	at := hiveBinHeader
	for at < len(bin) {
		size := int(int32(u32(bin[at:])))
		if size == 0 || size%8 != 0 {
			t.Fatalf("cell at %d has the size %d", at, size)
		}
		if size < 0 {
			size = -size
			used[string(bin[at+4:at+6])] = bin[at+4 : at+size]
		}
		at += size
	}
	if at != len(bin) {
		t.Errorf("cells end at %d of %d", at, len(bin))
	}
	key := bin[u32(data[36:])+4:]
	if string(key[:2]) != "nk" || used["nk"] == nil || used["sk"] == nil {
		t.Fatalf("the root is %q; cells %v", key[:2], used)
	}
	if security := bin[u32(key[44:])+4:]; string(security[:2]) != "sk" {
		t.Errorf("the root's security is %q", security[:2])
	}
	return string(key[76 : 76+binary.LittleEndian.Uint16(key[72:])])
}

// TestHiveNames checks that a name that is too long is rejected.
func TestHiveNames(t *testing.T) {
	if _, err := emptyHive(strings.Repeat("x", hiveBin)); err == nil {
		t.Error("a name that does not fit was written")
	}
}

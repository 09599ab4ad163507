package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/windows/registry"
)

// become runs another program and returns its error: Windows has no way to replace a process. Both processes are in one container, whose
// runtime sends them its signals.
func become(argv, env []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	return nil
}

// bootID returns the boot counter of Windows, which differs after each boot.
func bootID() (string, error) {
	const path = `SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters`
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE)
	if err != nil {
		return "", fmt.Errorf("registry key %s: %w", path, err)
	}
	defer k.Close()
	id, _, err := k.GetIntegerValue("BootId")
	if err != nil {
		return "", fmt.Errorf("BootId in registry key %s: %w", path, err)
	}
	return strconv.FormatUint(id, 10), nil
}

// openSelf opens this program.
func openSelf() (*os.File, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

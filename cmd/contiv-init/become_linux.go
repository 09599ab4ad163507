package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// become replaces this process by another program.
func become(argv, env []string) error {
	bin, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	if err := syscall.Exec(bin, argv, append(os.Environ(), env...)); err != nil {
		return fmt.Errorf("run %s: %w", bin, err)
	}
	return nil
}

// bootID returns a text that differs after each boot.
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(id), err
}

// openSelf opens this program, even if its file was replaced.
func openSelf() (*os.File, error) { return os.Open("/proc/self/exe") }

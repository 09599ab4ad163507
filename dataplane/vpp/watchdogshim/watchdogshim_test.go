package watchdogshim_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// VPP 25.10 aborts when a worker does not reach the barrier within a second, for example because a busy machine or a hypervisor
// gives it no processor. With watchdogshim it waits.
func TestWorkerWithoutProcessor(t *testing.T) {
	for _, stock := range []bool{false, true} {
		t.Run(map[bool]string{true: "stock", false: "watchdogshim"}[stock], func(t *testing.T) {
			v := vpptest.Start(t, vpptest.Options{Stock: stock, Workers: 1, FewPlugins: []string{}})
			thaw := freezeThread(t, v.PID(), "vpp_wk_0")
			answered := make(chan error, 1)
			go func() {
				_, err := v.CLI("create loopback interface")
				answered <- err
			}()
			time.Sleep(3 * time.Second)
			thaw()
			err := <-answered
			if !v.Running() {
				err = errors.Join(err, errors.New("VPP has ended"))
			}
			switch {
			case !stock && err != nil:
				t.Errorf("with watchdogshim: %v\n%s", err, v.Log())
			case stock && err == nil:
				t.Log("this VPP does not need watchdogshim any more")
			case stock:
				t.Logf("as expected: %v", err)
			}
		})
	}
}

// freezeThread stops one thread of a process as a debugger does, until the returned function is called.
func freezeThread(t *testing.T, pid int, name string) (thaw func()) {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/comm", pid, task.Name()))
		if strings.TrimSpace(string(comm)) != name {
			continue
		}
		tid, _ := strconv.Atoi(task.Name())
		return stopThread(t, tid)
	}
	t.Fatalf("process %d has no thread %s", pid, name)
	return nil
}

// stopThread stops a thread with ptrace. Only the thread of the tracer that has attached may release it.
func stopThread(t *testing.T, tid int) (thaw func()) {
	stopped, release, released := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the tracer's thread ends with this function, and the kernel then releases what is still traced
		err := syscall.PtraceAttach(tid)
		if err == nil {
			_, err = syscall.Wait4(tid, nil, syscall.WALL, nil)
		}
		stopped <- err
		if err != nil {
			return
		}
		<-release
		if err = syscall.PtraceDetach(tid); err != nil { // VPP has ended
			_, _ = syscall.Wait4(tid, nil, syscall.WALL, nil)
		}
		close(released)
	}()
	if err := <-stopped; err != nil {
		t.Skipf("skipped: a thread of VPP cannot be stopped here: %v", err)
	}
	return func() {
		close(release)
		<-released
	}
}

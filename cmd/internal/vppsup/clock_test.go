package vppsup

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// asVPP makes the test binary simulate VPP; the variable holds its directory. The file "rates" there holds the speed of its clock in its
// first, second, … run; the last one applies to all that follow.
const asVPP = "VPPSUP_TEST_VPP"

func pretendVPP(dir string) error {
	lives, err := os.OpenFile(filepath.Join(dir, "lives"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	life, err := lives.Seek(0, 2)
	if err != nil {
		return err
	}
	if _, err := lives.WriteString("x"); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "rates"))
	if err != nil {
		return err
	}
	rates := strings.Fields(string(text))
	rate, err := strconv.ParseFloat(rates[min(int(life), len(rates)-1)], 64)
	if err != nil {
		return err
	}
	settings, began := Settings{RunDir: dir}, time.Now()
	api, err := net.Listen("unix", settings.APISocket())
	if err != nil {
		return err
	}
	cli, err := net.Listen("unix", settings.CLISocket())
	if err != nil {
		return err
	}
	//lint:allow go: ends with the process
	go func() {
		for {
			answer(api, func([]byte) string { return strings.Repeat("\x00", 64) })
		}
	}()
	for {
		answer(cli, func([]byte) string {
			return fmt.Sprintf("\xff\xfd\x18show clock\r\nTime now %f, Sun, 22 Nov 2026 00:17:50 GMT\r\nTime last barrier release 0.0\r\nvpp# ",
				time.Since(began).Seconds()*rate)
		})
	}
}

// answer serves one client.
func answer(l net.Listener, with func([]byte) string) {
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	queried := make([]byte, 256)
	n, _ := c.Read(queried)
	_, _ = c.Write([]byte(with(queried[:n])))
}

func pretender(t *testing.T, rates string) *rig {
	return script(t, `exec env `+asVPP+`="$(dirname "$0")" `+os.Args[0]+"\n", func(c *Config) {
		if err := os.WriteFile(filepath.Join(c.Settings.RunDir, "rates"), []byte(rates), 0o644); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWrongClock: a VPP whose clock is wrong is restarted at once; one whose clock is right stays.
func TestWrongClock(t *testing.T) {
	r := pretender(t, "0.15 24 1")
	s := r.await("the third", func(s Status) bool { return s.State == Up && s.Starts == 3 })
	time.Sleep(5 * clockPause)
	if now := r.await("up", func(s Status) bool { return s.State == Up }); now.PID != s.PID {
		t.Errorf("it was started again: %+v", now)
	}
	// The rates are measured, so they may be a little less or more.
	if !regexp.MustCompile(`(?s)counts 0\.1[3-7] seconds per second.*counts 2[2-6]\.\d\d seconds per second.*killed by SIGKILL`).MatchString(r.log.String()) {
		t.Error("the log does not say how wrong the clocks were")
	}
}

// TestClockNeverRight: if every start results in a wrong clock, VPP stays as it is, because VPP with a wrong clock is better than no VPP.
func TestClockNeverRight(t *testing.T) {
	r := pretender(t, "0.5")
	r.await("given up", func(Status) bool { return strings.Contains(r.log.String(), "wrong after every start") })
	s := r.await("up", func(s Status) bool { return s.State == Up })
	time.Sleep(5 * clockPause)
	if now := r.await("up", func(s Status) bool { return s.State == Up }); now.PID != s.PID || now.Starts != clockTries {
		t.Errorf("%+v, then %+v", s, now)
	}
}

package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// timeout bounds the wait for one change of a page; an overloaded machine is slow.
const timeout = 30 * time.Second

// Browser is a running Chromium.
type Browser struct {
	t   testing.TB
	ctx context.Context
	dir string // of screenshots
}

// Start starts Chromium, which ends with the test.
func Start(t *testing.T) *Browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("the page is not tested in a browser: there is no Chromium (apt-get install chromium)")
	}
	dir := os.Getenv("CONTIV_SCREENSHOTS")
	if dir == "" {
		dir = t.ArtifactDir()
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("hide-scrollbars", true))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("Chromium does not start: %v", err)
	}
	return &Browser{t: t, ctx: ctx, dir: dir}
}

// Screen has the display settings of a page.
type Screen struct {
	Width, Height int
	Dark, Phone   bool
}

// Page is a tab.
type Page struct {
	t   testing.TB
	ctx context.Context
	dir string
}

// collect makes each document record its errors: exceptions, rejected promises, and violations of its content security
// policy.
const collect = `window.seenErrors = [];
addEventListener("error", (e) => seenErrors.push(String(e.message || e.target?.src || e.target?.href)), true);
addEventListener("unhandledrejection", (e) => seenErrors.push(String(e.reason)));
document.addEventListener("securitypolicyviolation", (e) => seenErrors.push("policy: " + e.violatedDirective + " " + e.blockedURI));`

// Open opens an address in a new tab.
func (b *Browser) Open(url string, s Screen) *Page {
	b.t.Helper()
	ctx, end := chromedp.NewContext(b.ctx)
	b.t.Cleanup(end)
	p := &Page{t: b.t, ctx: ctx, dir: b.dir}
	scheme := "light"
	if s.Dark {
		scheme = "dark"
	}
	var options []chromedp.EmulateViewportOption
	if s.Phone {
		options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	if err := chromedp.Do(ctx); err != nil { // the tab lives as long as the context of the first call
		b.t.Fatalf("a tab: %v", err)
	}
	p.run("open the page", chromedp.EmulateViewport(int64(s.Width), int64(s.Height), options...), chromedp.Func(
		func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			if err != nil {
				return err
			}
			_, err = cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: collect})
			return err
		}), chromedp.Navigate(url))
	return p
}

// Errors returns the exceptions and violations of the content security policy since the last call.
func (p *Page) Errors() []string {
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[[]string]("seenErrors.splice(0)"))
	if err != nil {
		return []string{err.Error()}
	}
	return out
}

func (p *Page) run(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.Shot("failed")
		p.t.Fatalf("%s: %v; the page shows:\n%s\nits errors: %q", what, err, p.text("body"), p.Errors())
	}
}

// Click clicks the first element that a CSS selector finds.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.run("click "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// ClickText clicks the first visible element of a selector whose text begins with text.
func (p *Page) ClickText(selector, text string) {
	p.t.Helper()
	p.Want(selector, text)
	p.Do(fmt.Sprintf(`[...document.querySelectorAll(%q)].find((e) => e.textContent.trim().startsWith(%q)).click()`, selector, text))
}

// Type types into a field.
func (p *Page) Type(selector, text string) {
	p.t.Helper()
	p.run("type into "+selector, chromedp.SendKeys(chromedp.CSS(selector), text, chromedp.NodeVisible))
}

// Press presses a key, such as a constant of chromedp/kb.
func (p *Page) Press(key string) {
	p.t.Helper()
	p.run("press a key", chromedp.KeyEvent(key))
}

// Choose selects a file in a file input.
func (p *Page) Choose(selector, file string) {
	p.t.Helper()
	file, err := filepath.Abs(file) // Chromium runs in another directory
	if err != nil {
		p.t.Fatal(err)
	}
	p.run("choose a file", chromedp.SetUploadFiles(chromedp.CSS(selector), []string{file}))
}

// Do runs JavaScript.
func (p *Page) Do(script string) {
	p.t.Helper()
	p.run(script, chromedp.Evaluate[chromedp.Void](script))
}

// Value returns the value of a JavaScript expression.
func Value[T any](p *Page, script string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	if err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
	return v
}

// text returns the visible text of all elements of a selector; "" if no element matches.
func (p *Page) text(selector string) string {
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	script := fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => e.innerText ?? e.textContent).join("\n")`, selector)
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](script))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return text
}

// Want waits until the elements of a selector show all the texts.
func (p *Page) Want(selector string, texts ...string) {
	p.t.Helper()
	p.until(selector, func(shown string) string {
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				return fmt.Sprintf("does not show %q", text)
			}
		}
		return ""
	})
}

// WantNot waits until the elements of a selector do not show a text.
func (p *Page) WantNot(selector, text string) {
	p.t.Helper()
	p.until(selector, func(shown string) string {
		if strings.Contains(shown, text) {
			return fmt.Sprintf("still shows %q", text)
		}
		return ""
	})
}

func (p *Page) until(selector string, problem func(shown string) string) {
	p.t.Helper()
	for end := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		shown := p.text(selector)
		why := problem(shown)
		if why == "" {
			return
		}
		if time.Now().After(end) {
			p.Shot("failed")
			p.t.Fatalf("%s %s:\n%s\nthe page's errors: %q", selector, why, shown, p.Errors())
		}
	}
}

// Shot saves a screenshot of the visible part of the page.
func (p *Page) Shot(name string) {
	p.t.Helper()
	p.shoot(name, false)
}

// ShotFull saves a screenshot of the whole page.
func (p *Page) ShotFull(name string) {
	p.t.Helper()
	p.shoot(name, true)
}

func (p *Page) shoot(name string, full bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	data, err := chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		params := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}
		if full {
			size, err := cdp.Call(ctx, t, page.GetLayoutMetrics, cdp.Empty{})
			if err != nil {
				return nil, err
			}
			params.CaptureBeyondViewport = &full
			params.Clip = &page.Viewport{Width: size.CSSContentSize.Width, Height: size.CSSContentSize.Height, Scale: 1}
		}
		shot, err := cdp.Call(ctx, t, page.CaptureScreenshot, params)
		return shot.Data, err
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(p.dir, name+".png"), data, 0o644)
	}
	if err != nil {
		p.t.Errorf("screenshot %s: %v", name, err)
	}
}

package server_test

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// browser is the one that all tests share. It starts for the first page, and closeBrowser
// ends it. Each page has its own storage and cookies.
var browser struct {
	start sync.Once
	ctx   context.Context
	err   error
}

// openBrowser returns the browser's context, which is the parent of each page's.
func openBrowser(t *testing.T) context.Context {
	t.Helper()
	browser.start.Do(func() { browser.ctx, browser.err = startBrowser() })
	require(t, browser.err == nil, "%v", browser.err)
	return browser.ctx
}

func startBrowser() (context.Context, error) {
	program, err := findBrowser()
	if err != nil {
		return nil, err
	}
	ctx, _ := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("lang", "en"),
	)...)
	ctx, _ = chromedp.NewContext(ctx)
	return ctx, chromedp.Do(ctx)
}

// findBrowser finds Chromium by its usual names.
func findBrowser() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", errors.New("chromium is not installed (sh deploy/ephemeral/install.sh)")
}

// closeBrowser waits until the browser has ended, if it was started.
func closeBrowser() {
	if browser.ctx != nil {
		_ = chromedp.Cancel(browser.ctx)
	}
}

// browserUsers runs the tests, and closes their browser and removes their program before
// TestMain looks for leaks.
type browserUsers struct{ *testing.M }

func (u browserUsers) Run() int {
	defer removeProgram()
	defer closeBrowser()
	return u.M.Run()
}

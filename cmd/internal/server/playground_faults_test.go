package server_test

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
)

// pageFaults collects what must not happen in a page: exceptions, errors in the console,
// violations of the page's policy, and failed requests that the test does not expect.
type pageFaults struct {
	mu       sync.Mutex
	found    []pageFault
	expected []string                     // see page.expect
	sent     map[network.RequestID]string // the URLs of requests
	ended    bool
}

type pageFault struct {
	response string // of a failed request: its status and path, as in page.expect
	text     string
}

// see is called with each event of the page.
func (f *pageFaults) see(event any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		f.add("exception", thrown(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			f.add("console", logged(e.Args))
		}
	case *log.EventEntryAdded:
		f.seeLog(e.Entry)
	case *network.EventRequestWillBeSent:
		if f.sent == nil {
			f.sent = map[network.RequestID]string{}
		}
		f.sent[e.RequestID] = e.Request.URL
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			f.seeFailure(e.Response.Status, e.Response.URL, e.Response.StatusText)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled { // by the page
			f.seeFailure(0, f.sent[e.RequestID], e.ErrorText)
		}
	}
}

// seeLog ignores the browser's entries about requests, which have events of their own.
func (f *pageFaults) seeLog(entry *log.Entry) {
	if entry.Source == log.EntrySourceSecurity || entry.Source != log.EntrySourceNetwork && entry.Level == log.EntryLevelError {
		f.add(string(entry.Source), entry.Text+" "+entry.URL)
	}
}

func (f *pageFaults) seeFailure(status int64, address, why string) {
	if u, err := url.Parse(address); err == nil && u.Path != "" {
		address = u.Path
	}
	response := fmt.Sprintf("%d %s", status, address)
	f.found = append(f.found, pageFault{response, "request: " + response + " " + why})
}

func (f *pageFaults) add(kind, what string) {
	f.found = append(f.found, pageFault{text: kind + ": " + what})
}

func (f *pageFaults) expect(responses []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expected = append(f.expected, responses...)
}

// end returns the faults so far that the test does not expect, and ignores later ones:
// requests fail when the tab closes.
func (f *pageFaults) end() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	var unexpected []string
	for _, fault := range f.found {
		if fault.response == "" || !f.expects(fault.response) {
			unexpected = append(unexpected, fault.text)
		}
	}
	return unexpected
}

// expects also allows what the page asks every service for, and only the demo has.
func (f *pageFaults) expects(response string) bool {
	return strings.HasPrefix(response, "404 ") && strings.HasSuffix(response, "/playground/demo.json") ||
		slices.ContainsFunc(f.expected, func(pattern string) bool {
			matches, _ := path.Match(pattern, response)
			return matches
		})
}

func thrown(e *runtime.ExceptionDetails) string {
	if e.Exception == nil {
		return e.Text
	}
	return cmp.Or(e.Exception.Description, e.Text)
}

// logged returns the arguments of a call of the console.
func logged(args []*runtime.RemoteObject) string {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = cmp.Or(a.Description, string(a.Value))
	}
	return strings.Join(parts, " ")
}

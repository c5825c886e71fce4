package torture

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// The reader of the service's log stops reading, catches up, stops again, and finally ends.
// Meanwhile, clients make every call of the cart. Not parallel: calls must be fast.
func TestPromise15_NoLogReaderStopsTheService(t *testing.T) {
	ephemeral.Slow(t)
	p := promised(t, 15, "a log reader that stalls or ends does not stop the service",
		"each request answered within 1 s; lost lines counted; exit 0 within 10 s")
	settings := []string{"REDIS_URL=" + ephemeral.StartRedis(t).URL, "DATABASE_URL=" + catalog(t)}
	total := &logTotal{}
	rounds := sized(1, 5)
	bar := p.progress("log pipes", 2*rounds)
	for range rounds {
		for _, closes := range []bool{false, true} {
			s := startPiped(t, settings...)
			s.suffer(p, total, closes)
			_ = bar.Add(1)
		}
	}
	p.counted("log pipes frozen", int64(3*rounds))
	p.counted("log pipes closed", int64(rounds))
	p.counted("requests meanwhile", total.requests.Load())
	p.detail("of them, answered 503 or 504 because Redis was slow", float64(total.unavailable.Load()), "")
	p.counted("late or unanswered", total.failed.Load())
	p.counted("lines lost and counted", total.lost)
	p.lasted("slowest request", time.Duration(total.slowest.Load()))
	p.lasted("slowest exit", total.exit)
}

type logTotal struct {
	requests, unavailable, failed, slowest atomic.Int64
	lost                                   int64
	exit                                   time.Duration
}

type piped struct {
	*service
	log     *os.File
	reading sync.Mutex // locked while nothing is read
	lines   chan map[string]any
}

func startPiped(t *testing.T, settings ...string) *piped {
	t.Helper()
	log, write, err := os.Pipe()
	assert.NoError(t, err)
	t.Cleanup(func() { log.Close() })
	s := &piped{service: newService(t, settings...), log: log, lines: make(chan map[string]any, 1000)}
	s.launch(write)
	write.Close()
	t.Cleanup(s.kill)
	go s.read()
	s.announces(s.await("serving"))
	return s
}

// read passes on the lines about anything but requests, until the pipe is closed.
func (s *piped) read() {
	defer close(s.lines)
	lines := bufio.NewScanner(s.log)
	for lines.Scan() {
		s.reading.Lock() // waits while the reader is frozen
		var line map[string]any
		err := json.Unmarshal(lines.Bytes(), &line)
		s.reading.Unlock()
		if err == nil && line["msg"] != "request" {
			s.lines <- line
		}
	}
}

func (s *piped) await(message string) map[string]any {
	s.t.Helper()
	late := time.After(startLimit)
	for {
		select {
		case line, more := <-s.lines:
			if text, _ := line["msg"].(string); strings.HasPrefix(text, message) {
				return line
			}
			assert.Require(s.t, more, "the log ends without the line %q", message)
		case <-late:
			s.t.Fatalf("the log has no line %q within %v", message, startLimit)
		}
	}
}

const lostLines = "commerce_log_lines_lost_total"

// suffer freezes the pipe, lets it flow again, and freezes or closes it.
func (s *piped) suffer(p *promise, total *logTotal, closes bool) {
	p.t.Helper()
	client := newShopper(p.t, s.service)
	clients := newRegulars(p.t, client, sized(4, 16), fmt.Sprint("regular-", s.cmd.Process.Pid))
	awaitEveryCall(p.t, clients)

	s.reading.Lock()
	s.shop(p, total, clients, client)
	lost := s.metric(lostLines)
	s.reading.Unlock()
	if gap := s.await("the log has a gap"); gap["lines"] != lost {
		p.broke("the log says that %v lines are lost, want %v", gap["lines"], lost)
	}
	if closes {
		s.log.Close()
	} else {
		s.reading.Lock()
		defer s.reading.Unlock()
	}
	s.shop(p, total, clients, client)
	total.lost += int64(s.metric(lostLines))

	client.client.CloseIdleConnections() // for which the exit would wait
	total.exit = max(total.exit, s.wantEnd(10*time.Second))
}

// shop makes every call until lines of the log are lost, and then for a while.
func (s *piped) shop(p *promise, total *logTotal, clients []*regular, other *shopper) {
	p.t.Helper()
	before := s.metric(lostLines)
	note := func(what any, want int, a reply) {
		total.requests.Add(1)
		for slowest := total.slowest.Load(); int64(a.Took) > slowest && !total.slowest.CompareAndSwap(slowest, int64(a.Took)); {
			slowest = total.slowest.Load()
		}
		if a.Status == http.StatusServiceUnavailable || a.Status == http.StatusGatewayTimeout {
			total.unavailable.Add(1) // on a busy machine
		} else if a.Status != want {
			p.broke("%v: %v", what, a)
		}
		if (a.Status == 0 || a.Took > ephemeral.Patience(time.Second)) && total.failed.Add(1) <= 20 {
			p.broke("%v: %v after %v", what, a, a.Took)
		}
	}
	stop := browse(clients, func(call shopCall, _ time.Time, a reply) { note(call, http.StatusOK, a) })
	defer stop()
	for began := time.Now(); s.metric(lostLines) == before; {
		assert.Require(p.t, total.failed.Load() == 0 && time.Since(began) <= startLimit,
			"no line of the log is lost within %v", startLimit)
		var fast sync.WaitGroup
		for range 8 { // fills the pipe and the buffer sooner
			fast.Go(func() {
				for i := 0; i < 200 && total.failed.Load() == 0; i++ {
					note("an unknown path", http.StatusNotFound, other.send("GET", "/unknown", ""))
				}
			})
		}
		fast.Wait()
	}
	time.Sleep(sized(500*time.Millisecond, 10*time.Second))
}

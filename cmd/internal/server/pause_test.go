package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/cart/wire"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// pausing is a route whose requests pause until the test, the client or the process ends the pause.
type pausing struct {
	begun    chan struct{}
	end      chan bool // whether work follows
	slow     waiting   // another route of the area
	handler  http.Handler
	log      *logBuffer
	statuses chan int
	clients  []func(context.Context) // by protocol; each sends a request, and its status to statuses
}

func (p *pausing) handle(c *gin.Context) (wire.Answer, error) {
	return wire.Answer{Later: func(pause wire.Pause) (func(*wire.Writer), error) {
		err := pause(func(ctx context.Context) bool {
			p.begun <- struct{}{}
			select {
			case works := <-p.end:
				return works
			case <-ctx.Done():
				return false
			}
		})
		return func(w *wire.Writer) { w.BeginObject(); w.EndObject() }, errors.Join(err, c.Request.Context().Err())
	}}, nil
}

func protocols(http1, http2 bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(http1)
	p.SetUnencryptedHTTP2(http2)
	return p
}

// pauseLimit is how long a request and its connection may take without pauses.
var pauseLimit = ephemeral.Patience(400 * time.Millisecond)

// startPausing serves one request at a time, and gives it and its connection little time.
func startPausing(t *testing.T, ending context.Context) *pausing {
	t.Helper()
	p := &pausing{
		begun: make(chan struct{}), end: make(chan bool), statuses: make(chan int),
		slow: waiting{make(chan struct{}), make(chan struct{})},
	}
	p.handler, p.log = handlerOf(t, func(c *server.Config) {
		c.Areas = []wire.Area{{Routes: []wire.Route{
			{Method: "GET", Path: "/calls/pause", Handle: p.handle}, {Method: "GET", Path: "/calls/slow", Handle: p.slow.handle},
		}}}
		c.MaxInFlight, c.Deadline, c.Ending = 1, pauseLimit, ending
	})
	web := openWeb(t, p.handler, func(s *http.Server) {
		s.ReadTimeout, s.WriteTimeout, s.Protocols = pauseLimit, pauseLimit, protocols(true, true)
	})
	for _, shared := range []bool{false, true} {
		client := &http.Transport{Protocols: protocols(!shared, shared)}
		t.Cleanup(client.CloseIdleConnections)
		p.clients = append(p.clients, func(ctx context.Context) {
			response, err := client.RoundTrip(assert.Must(http.NewRequestWithContext(ctx, "GET", "http://"+web.addr+"/calls/pause", nil))(t))
			if err != nil {
				p.statuses <- 0
				return
			}
			defer response.Body.Close()
			_, err = io.ReadAll(response.Body)
			assert.NoError(t, err)
			p.statuses <- response.StatusCode
		})
	}
	return p
}

// ask sends two requests of each client, which then pause.
func (p *pausing) ask(ctx context.Context) {
	for _, client := range p.clients {
		for range 2 {
			go client(ctx)
			<-p.begun
		}
	}
}

func TestPause_HasNeitherDeadlineNorPlace(t *testing.T) {
	t.Parallel()
	p := startPausing(t, nil)
	p.ask(t.Context())
	time.Sleep(2 * pauseLimit)
	for range 2 * len(p.clients) {
		p.end <- true
		assert.Equal(t, <-p.statuses, http.StatusOK, "after a pause")
	}
	for line := range strings.Lines(p.log.String()) {
		ms := decode[struct{ MS float64 }](t, []byte(line)).MS
		assert.That(t, ms < float64(2*pauseLimit.Milliseconds()), "the log counts the pause: %s", line)
	}
	done := p.slow.fill(p.handler, "/calls/slow", 1)
	p.slow.leave <- struct{}{}
	assert.Equal(t, <-done, http.StatusNoContent, "a request afterwards")
}

func TestPause_EndsWithARefusalIfThereIsNoPlaceForWork(t *testing.T) {
	t.Parallel()
	p := startPausing(t, nil)
	done := p.slow.fill(p.handler, "/calls/slow", 1)
	for works, want := range map[bool]int{true: http.StatusServiceUnavailable, false: http.StatusOK} {
		p.slow.leave <- struct{}{}
		assert.Equal(t, <-done, http.StatusNoContent, "the request with the place")
		p.ask(t.Context())
		done = p.slow.fill(p.handler, "/calls/slow", 1)
		for range 2 * len(p.clients) {
			p.end <- works
			assert.Equal(t, <-p.statuses, want, "status, if work follows: %v", works)
		}
	}
	p.slow.leave <- struct{}{}
	assert.Equal(t, <-done, http.StatusNoContent, "the request with the place")
}

func TestPause_EndsWithTheClient(t *testing.T) {
	t.Parallel()
	p := startPausing(t, nil)
	ctx, leave := context.WithCancel(t.Context())
	p.ask(ctx)
	leave()
	for range 2 * len(p.clients) {
		<-p.statuses
	}
	ephemeral.Eventually(t, "lines about clients that left", func() bool { return strings.Count(p.log.String(), `"status":499`) == 2*len(p.clients) })
}

func TestPause_EndsWithTheProcess(t *testing.T) {
	t.Parallel()
	ending, end := context.WithCancel(t.Context())
	p := startPausing(t, ending)
	for _, client := range p.clients {
		go client(t.Context())
		<-p.begun
		defer func() { assert.Equal(t, <-p.statuses, http.StatusOK, "when the process stops") }()
	}
	end()
}

package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"commerce/cart/wire"
	"commerce/cmd/internal/server"
	"commerce/cmd/internal/telemetry"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
)

type waiting struct {
	entered, leave chan struct{}
}

func (w waiting) handle(c *gin.Context) (wire.Answer, error) {
	w.entered <- struct{}{}
	<-w.leave
	c.Status(http.StatusNoContent)
	return wire.Answer{}, nil
}

func areaAt(path string, handle wire.Handler) wire.Area {
	return wire.Area{Routes: []wire.Route{{Method: "GET", Path: path, Handle: handle}, {Method: "POST", Path: path, Handle: handle}}}
}

func quick(c *gin.Context) (wire.Answer, error) {
	c.Status(http.StatusNoContent)
	return wire.Answer{}, nil
}

// fill sends n requests, and waits for them in their handler. done gets each status.
func (w waiting) fill(h http.Handler, path string, n int) (done chan int) {
	done = make(chan int, n)
	for range n {
		go func() { done <- ask(h, "192.0.2.1", "GET", path).Code }()
	}
	for range n {
		<-w.entered
	}
	return done
}

func TestInFlight_RefusesFurtherRequestsAtOnceAndServesAgain(t *testing.T) {
	t.Parallel()
	slow := waiting{make(chan struct{}), make(chan struct{})}
	metrics := telemetry.New("test")
	h, log := handlerOf(t, func(c *server.Config) {
		c.Areas = []wire.Area{areaAt("/subscriptions", slow.handle), areaAt("/cart", quick)}
		c.MaxInFlight, c.BasePath = 2, "/api"
		c.CORSOrigins = []string{"https://shop.example.com"}
		c.Metrics = metrics
	})
	refused := 0.0
	for range 2 {
		done := slow.fill(h, "/api/subscriptions", 2)
		for range 3 { // the test would hang if these waited
			w := ask(h, "192.0.2.2", "GET", "/api/subscriptions", "X-Request-Id", "mine", "Accept-Language", "ar", "Origin", "https://shop.example.com")
			got := decode[map[string]any](t, w.Body.Bytes())
			assert.Equal(t, []any{w.Code, got["code"], got["request_id"], got["api"]}, []any{503, "unavailable", "mine", server.APIName}, "the refusal")
			assert.That(t, got["timestamp"].(float64) != 0 && strings.ContainsAny(got["message"].(string), "ابتثج"), "no time, or not in Arabic: %s", w.Body)
			for header, want := range map[string]string{
				"Retry-After": "1", "X-Request-Id": "mine", "Cache-Control": "no-store",
				"Access-Control-Allow-Origin": "https://shop.example.com", "Content-Type": "application/json; charset=utf-8",
			} {
				assert.Equal(t, w.Header().Get(header), want, "%s", header)
			}
			refused++
			assert.Equal(t, metric(t, metrics, `commerce_limiter_refusals_total{limit="in_flight"}`), refused, "refusals that are counted")
			assert.Equal(t, metric(t, metrics, `commerce_http_request_duration_seconds_count{method="GET",route="refused",status="503"}`), refused, "requests that are counted")
		}
		assert.Equal(t, ask(h, "192.0.2.2", "GET", "/api/cart").Code, http.StatusNoContent, "status of the other area")
		assert.Equal(t, ask(h, "192.0.2.2", "OPTIONS", "/api/subscriptions", "Origin", "https://shop.example.com", "Access-Control-Request-Method", "GET").Code, http.StatusNoContent, "status of a preflight")
		assert.Equal(t, ask(h, "192.0.2.2", "GET", "/api/openapi.yaml").Code, http.StatusOK, "status of a page")
		for range 2 {
			slow.leave <- struct{}{}
			assert.Equal(t, <-done, http.StatusNoContent, "status of a request that had been let in")
		}
	}
	const line = `"msg":"too many requests at the same time","of":"subscriptions","limit":2,"refused":6}`
	ephemeral.Eventually(t, "the log has "+line, func() bool { return strings.Contains(log.String(), line) })
}

// post sends a request whose body the test writes, and closes at its end. status gets the status
// of the response, or 0 if there is none.
func post(url string) (body *io.PipeWriter, status chan int) {
	sent, body := io.Pipe()
	status = make(chan int, 1)
	go func() {
		response, err := http.Post(url, "text/plain", sent)
		if err != nil {
			status <- 0
			return
		}
		response.Body.Close()
		status <- response.StatusCode
	}()
	return body, status
}

// reads reads a body. It says when it begins to read that of a POST.
func reads(reading chan<- struct{}) wire.Handler {
	return func(c *gin.Context) (wire.Answer, error) {
		if c.Request.Method == http.MethodPost {
			reading <- struct{}{}
		}
		_, err := io.ReadAll(c.Request.Body)
		c.Status(http.StatusNoContent)
		return wire.Answer{}, err
	}
}

// Otherwise clients could send all but the last byte of their bodies, and pass the gate together.
func TestInFlight_RefusesABodyThatArrivesWhenAllPlacesAreTaken(t *testing.T) {
	t.Parallel()
	slow := waiting{make(chan struct{}), make(chan struct{})}
	reading := make(chan struct{}, 1)
	h, _ := handlerOf(t, func(c *server.Config) {
		c.MaxInFlight = 1
		c.Areas = []wire.Area{{Routes: []wire.Route{
			{Method: "GET", Path: "/cart", Handle: slow.handle},
			{Method: "POST", Path: "/cart", Handle: reads(reading)},
		}}}
	})
	web := httptest.NewServer(h)
	defer web.Close()
	late, status := post(web.URL + "/cart")
	<-reading
	done := slow.fill(h, "/cart", 1) // gets in, since the other request waits for its body
	late.Close()
	assert.Equal(t, <-status, http.StatusServiceUnavailable, "status of the request whose body came late")
	slow.leave <- struct{}{}
	assert.Equal(t, <-done, http.StatusNoContent, "status of the request in its place")
}

// A client that sends its body slowly must not take the place of others.
func TestInFlight_DoesNotCountARequestThatWaitsForItsBody(t *testing.T) {
	t.Parallel()
	reading := make(chan struct{}, 1)
	h, _ := handlerOf(t, func(c *server.Config) {
		c.MaxInFlight = 1
		c.Areas = []wire.Area{areaAt("/cart", reads(reading))}
	})
	web := httptest.NewServer(h)
	defer web.Close()
	slow, status := post(web.URL + "/cart")
	_, _ = io.WriteString(slow, "the first part") // the request is on its way
	<-reading
	get := func() int { return ask(h, "192.0.2.2", "GET", "/cart").Code }
	ephemeral.Eventually(t, "the first request waits for its body", func() bool { return get() == http.StatusNoContent })
	for i := range 20 {
		_, _ = io.WriteString(slow, "another part")
		assert.Equal(t, get(), http.StatusNoContent, "status after %d parts of the other body", i+1)
	}
	slow.Close()
	assert.Equal(t, <-status, http.StatusNoContent, "status of the slow request")
}

// A stream may take minutes.
func TestInFlight_DoesNotCountAResponseThatIsBeingSent(t *testing.T) {
	t.Parallel()
	sent, leave := make(chan struct{}), make(chan struct{})
	h, _ := handlerOf(t, func(c *server.Config) {
		c.MaxInFlight = 1
		c.Areas = []wire.Area{{Routes: []wire.Route{
			{Method: "GET", Path: "/it/stream", Handle: func(c *gin.Context) (wire.Answer, error) {
				c.String(http.StatusOK, "the first part")
				c.Writer.Flush()
				close(sent)
				<-leave
				return wire.Answer{}, nil
			}},
			{Method: "GET", Path: "/it", Handle: quick},
		}}}
	})
	done := make(chan int, 1)
	go func() { done <- ask(h, "192.0.2.1", "GET", "/it/stream").Code }()
	<-sent
	assert.Equal(t, ask(h, "192.0.2.2", "GET", "/it").Code, http.StatusNoContent, "status during a stream")
	close(leave)
	<-done
}

func TestInFlight_APanicFreesItsPlace(t *testing.T) {
	t.Parallel()
	h, _ := handlerOf(t, func(c *server.Config) {
		c.MaxInFlight = 1
		c.Areas = only("/abort", func(*gin.Context) (wire.Answer, error) { panic(http.ErrAbortHandler) })
	})
	for range 3 {
		func() {
			defer func() { assert.That(t, recover() == http.ErrAbortHandler, "a panic was recovered") }()
			ask(h, "192.0.2.1", "GET", "/abort")
		}()
	}
}

type hanging struct {
	subscriptions.Source
	entered, leave chan struct{}
}

func (h hanging) List(ctx context.Context, store int64, q subscriptions.Query) ([]subscriptions.Subscription, error) {
	h.entered <- struct{}{}
	<-h.leave
	return h.Source.List(ctx, store, q)
}

// All places for subscriptions are taken by requests that hang. Carts go on.
func TestInFlight_CartsDoNotWaitForSubscriptions(t *testing.T) {
	slow := hanging{entered: make(chan struct{}), leave: make(chan struct{})}
	s := newShop(t, func(p *server.Parts) {
		slow.Source = p.Subscriptions
		p.MaxInFlight, p.Subscriptions = 2, slow
	})
	c := s.guest(t)
	statuses := make(chan int, 2)
	for range 2 {
		go func() { statuses <- s.merchant(t).send("GET", "/subscriptions", "").Status }()
	}
	for range 2 {
		<-slow.entered
	}
	s.merchant(t).refused(503, "unavailable", "GET", "/subscriptions", "")
	c.add(`{"product_id":1}`)
	c.wantLines("1×1")
	close(slow.leave)
	for range 2 {
		assert.Equal(t, <-statuses, http.StatusOK, "status of a list that had been let in")
	}
}

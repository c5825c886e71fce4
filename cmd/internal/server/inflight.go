package server

import (
	"bufio"
	"cmp"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"commerce/auth/locale"
	"commerce/cart/wire"
)

// InFlightPerCPU is the default limit of requests that an area processes at the same time, per
// CPU. At full load, a cart call takes 0.1 ms of CPU time, so the last of 256 waits 25 ms. A
// lower limit would refuse requests while Redis or Postgres pauses for a moment.
const InFlightPerCPU = 256

// front is what a request passes before Gin. It limits how many requests the service processes
// at the same time. Further requests get a 503 immediately: a service that accepts more than it can
// handle answers every request too late. Each area has its own limit, so that a slow Postgres does
// not cause 503s for carts.
//
// It also turns HEAD into GET, so that the headers are the same, compression included (net/http
// omits the body), and sends what a connection has buffered (see HoldWrites).
type front struct {
	next    http.Handler
	respond *responder
	origins crossOrigins
	byPath  map[string]*inFlightLimit // by the first segment of the path
	rest    *inFlightLimit            // of all other paths, such as those of pages
}

func newFront(next http.Handler, respond *responder) *front {
	limit := int64(cmp.Or(respond.MaxInFlight, InFlightPerCPU*runtime.GOMAXPROCS(0)))
	f := &front{
		next: next, respond: respond, origins: newCrossOrigins(respond.CORSOrigins),
		byPath: map[string]*inFlightLimit{}, rest: &inFlightLimit{area: "pages", limit: limit, respond: respond},
	}
	for _, area := range respond.Areas {
		own := &inFlightLimit{area: firstSegment(area.Routes[0].Path), limit: limit, respond: respond}
		for _, route := range area.Routes {
			f.byPath[firstSegment(route.Path)] = own
		}
	}
	return f
}

func firstSegment(path string) string {
	segment, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return segment
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isPreflight(r) { // takes no work, and a browser hides a refused one from the page
		f.next.ServeHTTP(w, r)
		return
	}
	limit := f.byPath[firstSegment(strings.TrimPrefix(r.URL.Path, f.respond.BasePath))]
	if limit == nil {
		limit = f.rest
	}
	if !limit.enter() {
		limit.count()
		f.refuse(w, r)
		return
	}
	s := &slot{ResponseWriter: w, body: r.Body, limit: limit, taken: true}
	defer s.leave()
	conn := connectionOf(r)
	defer conn.endResponse()
	if r.Method == http.MethodHead {
		r = wire.AsGet(r)
	}
	if r.Body != nil && r.Body != http.NoBody {
		with := *r
		with.Body = s
		r = &with
	}
	f.next.ServeHTTP(s, r)
	conn.flush(w)
}

// notRouted is the route in the metrics of requests that are refused before Gin.
const notRouted = "refused"

// refuse writes the 503. It is the same as responder.fail would write, but takes a fraction of
// the time, since Gin has no part in it.
func (f *front) refuse(w http.ResponseWriter, r *http.Request) {
	start := f.respond.Now()
	f.respond.Metrics.RequestBegan()
	defer func() {
		f.respond.Metrics.RequestEnded(r.Method, notRouted, http.StatusServiceUnavailable, f.respond.Now().Sub(start), "")
	}()
	h := w.Header()
	f.origins.mark(h, r)
	id := requestIDFrom(r.Header.Get("X-Request-Id"))
	h["X-Request-Id"] = []string{id}
	h["Retry-After"] = []string{"1"}
	h["Cache-Control"] = notStored
	h["Content-Type"] = jsonContent
	protect(h)
	language := cmp.Or(locale.Match(r.Header.Get("Accept-Language"), ""), locale.En)
	body := f.respond.writers.get(language)
	defer f.respond.writers.put(body)
	if write := f.respond.bareFailure(r.URL.Path); write != nil {
		write(body, errUnavailable, http.StatusServiceUnavailable)
	} else {
		writeError(body, errUnavailable, id, f.respond.Now())
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write(body.Bytes()) // the client may be gone
}

type inFlightLimit struct {
	area    string // of its requests, such as "cart"
	limit   int64
	respond *responder
	busy    atomic.Int64
	refused atomic.Int64 // not logged yet
}

func (l *inFlightLimit) enter() bool {
	if l.busy.Add(1) <= l.limit {
		return true
	}
	l.busy.Add(-1)
	return false
}

// count counts a refusal. All refusals of a second share a line in the log, because an
// overloaded service must not be slowed down by its log.
func (l *inFlightLimit) count() {
	l.respond.Metrics.Refused("in_flight")
	if l.refused.Add(1) == 1 {
		time.AfterFunc(time.Second, func() {
			l.respond.Log.Warn("too many requests at the same time", "of", l.area, "limit", l.limit, "refused", l.refused.Swap(0))
		})
	}
}

// slot is a request's place below a limit. The request gives up its place while the service waits
// for the client or for news: while it reads the body, in a pause, and from the first byte of the
// response on. So slow clients, long streams and calls that wait do not use up the limit.
type slot struct {
	http.ResponseWriter
	body  io.ReadCloser
	limit *inFlightLimit
	taken bool

	arrived bool // all of the body
}

func (s *slot) leave() {
	if s.taken {
		s.taken = false
		s.limit.busy.Add(-1)
	}
}

// Read reads the request's body. The request has no place until all of its body has arrived. If
// the limit is reached then, Read returns errUnavailable: the request has not changed anything yet.
func (s *slot) Read(p []byte) (int, error) {
	if s.arrived {
		return s.body.Read(p)
	}
	s.leave()
	n, err := s.body.Read(p)
	if err != io.EOF {
		return n, err
	}
	s.arrived = true
	if refused := s.enter(); refused != nil {
		return n, refused
	}
	return n, err
}

// enter takes a place again. It returns errUnavailable if the limit is reached.
func (s *slot) enter() error {
	if s.taken = s.limit.enter(); !s.taken {
		s.limit.count()
		return errUnavailable
	}
	return nil
}

func (s *slot) Close() error { return s.body.Close() }

// WriteHeader gives a compressed response a tag of its own.
func (s *slot) WriteHeader(status int) {
	h := s.Header()
	if encoding, tag := h["Content-Encoding"], h["Etag"]; len(encoding) > 0 && len(tag) > 0 {
		tag[0] = wire.Encoded(tag[0], encoding[0])
	}
	s.ResponseWriter.WriteHeader(status)
}

// Write gives up the place and writes a part of the response.
func (s *slot) Write(p []byte) (int, error) {
	s.leave()
	return s.ResponseWriter.Write(p)
}

// Flush implements http.Flusher, for streams.
func (s *slot) Flush() {
	s.leave()
	if f, ok := s.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Hijack implements http.Hijacker, for streams of events.
func (s *slot) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	s.leave()
	return http.NewResponseController(s.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (s *slot) Unwrap() http.ResponseWriter { return s.ResponseWriter }

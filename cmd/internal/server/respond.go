package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/money"
	"commerce/cart/wire"
)

// responder writes every response of the API: the envelopes of data and of errors,
// entity tags and caching headers. Nothing else does.
type responder struct {
	Config
	origins origins
	writers writers
	repeats repeats
}

func (r *responder) adapt(area *wire.Area, route *wire.Route) gin.HandlerFunc {
	var vary []string // all responses share it
	for _, headers := range []string{area.Vary, route.Vary} {
		if headers != "" {
			vary = append(vary, headers)
		}
	}
	if vary != nil {
		vary = append(vary, "Accept-Encoding")
	}
	return func(c *gin.Context) {
		answer, err := route.Handle(c)
		request := requestContextOf(c.Request.Context())
		request.store, request.caller = answer.Store, answer.Caller
		if err == nil && answer.Later != nil {
			answer.Data, err = answer.Later(func(wait func(context.Context) bool) error { return r.pause(c, request, wait) })
		}
		if vary != nil { // it has what compression and CORS have added
			c.Writer.Header()["Vary"] = vary
		}
		switch {
		case err != nil:
			r.fail(c, answer, err)
		case answer.Data != nil, answer.Unchanged != "":
			r.show(c, area, answer)
		case answer.Stream != nil:
			c.Request = c.Request.WithContext(request.withoutDeadline())
			r.stream(c, answer)
		case answer.Events != nil:
			r.events(c, answer)
		}
	}
}

func (r *responder) show(c *gin.Context, area *wire.Area, answer wire.Answer) {
	c.Writer.Header()["Cache-Control"] = revalidated
	if answer.Cache != "" {
		c.Header("Cache-Control", answer.Cache)
	} else if area.Private {
		c.Writer.Header()["Cache-Control"] = notStored
	}
	if answer.Unchanged != "" {
		notModified(c, answer.Unchanged)
		return
	}
	w := r.writers.get(answer.Language)
	defer r.writers.put(w)
	if area.Bare != nil {
		answer.Data(w)
		r.whole(c, w, cmp.Or(answer.Status, http.StatusOK))
		return
	}
	w.BeginObject()
	if area.Success {
		w.Bool("success", true)
	}
	w.Null("message")
	tag := writeData(w, &answer)

	if !safe(c.Request) && c.Writer.Header()["Idempotency-Replayed"] != nil {
		r.Metrics.Replayed()
	}
	if tag != "" {
		if known, found := answer.Known.Find(strings.Trim(tag, `"`)); found && safe(c.Request) {
			notModified(c, known)
			return
		}
		c.Header("ETag", tag)
	}
	endEnvelope(w, r.Now())
	r.whole(c, w, http.StatusOK)
}

// notModified answers that the client's copy, which has this tag, is current.
func notModified(c *gin.Context, tag string) {
	c.Header("ETag", `"`+tag+`"`)
	c.Status(http.StatusNotModified)
}

// fail writes an error, or closes the connection for one that wraps http.ErrAbortHandler.
func (r *responder) fail(c *gin.Context, answer wire.Answer, err error) {
	c.Abort()
	_ = c.Error(err) // for the request's line in the log
	if errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	if c.Writer.Written() {
		return
	}
	known := problemOf(err)
	status := known.HTTPStatus()
	r.Metrics.Failed(c.Request.Method, c.FullPath(), status, known)
	l := r.language(c, answer.Language, status)

	w := r.writers.get(l)
	defer r.writers.put(w)
	write := answer.Failure
	if write == nil {
		write = r.bareFailure(c.Request.URL.Path)
	}
	switch {
	case write != nil:
		write(w, known, status)
	case answer.Data == nil:
		writeError(w, known, requestIDOf(c), r.Now())
	default:
		beginError(w, known)
		if tag := writeData(w, &answer); tag != "" {
			c.Header("ETag", tag)
		}
		endError(w, requestIDOf(c), r.Now())
	}
	switch status {
	case http.StatusUnauthorized:
		c.Header("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusGatewayTimeout:
		seconds := strconv.FormatInt(known.RetrySeconds(), 10)
		c.Header("Retry-After", seconds)
		if limit := known.Budget.Uses; status == http.StatusTooManyRequests && limit != 0 {
			c.Header("Ratelimit-Limit", strconv.FormatInt(limit, 10))
			c.Header("Ratelimit-Remaining", "0")
			c.Header("Ratelimit-Reset", seconds)
		}
	}
	if status == http.StatusUnsupportedMediaType && known.Names("Content-Encoding") {
		c.Header("Accept-Encoding", "identity")
	}
	c.Writer.Header()["Cache-Control"] = notStored
	r.whole(c, w, status)
}

// bareFailure returns how an error on a path without an envelope is written; nil for other paths.
func (r *responder) bareFailure(path string) wire.Failure {
	for i := range r.Areas {
		if bare := r.Areas[i].Bare; bare != nil {
			if write := bare(strings.TrimPrefix(path, r.BasePath)); write != nil {
				return write
			}
		}
	}
	return nil
}

// writeError writes the whole envelope of an error without data, for a response that no handler makes.
func writeError(w *wire.Writer, known *problem.Error, requestID string, now time.Time) {
	beginError(w, known)
	w.Null("data")
	endError(w, requestID, now)
}

func beginError(w *wire.Writer, known *problem.Error) {
	w.BeginObject()
	w.Bool("success", false)
	w.Problem(known)
}

func endError(w *wire.Writer, requestID string, now time.Time) {
	w.Text("request_id", requestID)
	endEnvelope(w, now)
}

func writeData(w *wire.Writer, answer *wire.Answer) (tag string) {
	w.Member("data")
	w.BeginView()
	answer.Data(w)
	if answer.Version == "" {
		return ""
	}
	return w.ETag(answer.Version)
}

func endEnvelope(w *wire.Writer, now time.Time) {
	w.Text("api", APIName)
	w.Number("timestamp", now.Unix())
	w.EndObject()
}

func (r *responder) whole(c *gin.Context, w *wire.Writer, status int) {
	size := len(w.Bytes())
	if size > countedByNetHTTP {
		c.Header("Content-Length", strconv.Itoa(size))
	}
	if conn := connectionOf(c.Request); conn != nil && size > fitsNetHTTP {
		conn.holding = true
	}
	c.Writer.Header()["Content-Type"] = jsonContent
	protect(c.Writer.Header())
	c.Status(status)
	if _, err := c.Writer.Write(w.Bytes()); err != nil {
		_ = c.Error(err) // for the request's line in the log
	}
}

// Values of headers that responses share. Nothing changes them.
var (
	jsonContent = []string{"application/json; charset=utf-8"}
	revalidated = []string{"private, no-cache"}
	notStored   = []string{"no-store"}
	noSniffing  = []string{"nosniff"}
	noContent   = []string{"default-src 'none'"}
)

// protect sets headers for a response that is not a page: a browser that opens it must
// neither take it for one nor load or run anything that it names.
func protect(h http.Header) {
	h["X-Content-Type-Options"] = noSniffing
	h["Content-Security-Policy"] = noContent
}

func safe(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// failAfterPanic turns a panic into a 500 without details, which are in the log. It returns false
// for http.ErrAbortHandler, which closes the connection without a response.
func (r *responder) failAfterPanic(c *gin.Context, panicked any) bool {
	if err, ok := panicked.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return false
	}
	r.Log.ErrorContext(c.Request.Context(), "panic", "value", truncate(fmt.Sprint(panicked), maxLoggedError), "stack", string(debug.Stack()), "request_id", requestIDOf(c))
	r.fail(c, wire.Answer{}, fmt.Errorf("panic: %v", panicked))
	return true
}

// maxKeptBuffer is enough for a page of 100 ordinary subscriptions. The longest page,
// with metadata of 16 KiB in each row, takes about 3 MB.
const maxKeptBuffer = 256 << 10 // bytes

// writers reuse the writers, and so the memory, of responses that have been sent.
type writers struct {
	prices *money.Formatter
	pool   sync.Pool // of *wire.Writer
}

func (p *writers) get(l locale.Locale) *wire.Writer {
	w, ok := p.pool.Get().(*wire.Writer)
	if !ok {
		return wire.NewWriter(nil, l, p.prices)
	}
	w.Reset(l)
	return w
}

// put keeps a writer that the caller no longer uses, unless it is so large that few
// responses need it.
func (p *writers) put(w *wire.Writer) {
	if cap(w.Bytes()) <= maxKeptBuffer {
		p.pool.Put(w)
	}
}

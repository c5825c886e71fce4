package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
)

// statuses is the one table of codes. The OpenAPI document lists the same.
var statuses = map[string]int{
	"malformed_json":         http.StatusBadRequest,
	"invalid_parameter":      http.StatusBadRequest,
	"store_required":         http.StatusBadRequest,
	"store_unknown":          http.StatusBadRequest,
	"cart_invalid":           http.StatusBadRequest,
	"unauthenticated":        http.StatusUnauthorized,
	"not_found":              http.StatusNotFound,
	"product_not_found":      http.StatusNotFound,
	"item_not_found":         http.StatusNotFound,
	"subscription_not_found": http.StatusNotFound,
	"method_not_allowed":     http.StatusMethodNotAllowed,
	"body_too_large":         http.StatusRequestEntityTooLarge,
	"unsupported_media_type": http.StatusUnsupportedMediaType,
	"idempotency_conflict":   http.StatusConflict,
	"version_mismatch":       http.StatusPreconditionFailed,
	"validation_failed":      http.StatusUnprocessableEntity,
	"insufficient_stock":     http.StatusUnprocessableEntity,
	"out_of_stock":           http.StatusUnprocessableEntity,
	"product_inactive":       http.StatusUnprocessableEntity,
	"plan_unavailable":       http.StatusUnprocessableEntity,
	"field_missing":          http.StatusUnprocessableEntity,
	"field_invalid":          http.StatusUnprocessableEntity,
	"quantity_out_of_range":  http.StatusUnprocessableEntity,
	"cart_full":              http.StatusUnprocessableEntity,
	"coupon_invalid":         http.StatusUnprocessableEntity,
	"coupon_minimum":         http.StatusUnprocessableEntity,
	"rate_limited":           http.StatusTooManyRequests,
	"unavailable":            http.StatusServiceUnavailable,
	"outcome_unknown":        http.StatusGatewayTimeout,
	"internal":               http.StatusInternalServerError,
}

// problem is an error that a caller can be told about.
type problem interface {
	error
	Code() string
	Message(locale.Locale) string
}

// Some problems also name the members of the request at fault (or the one), carry
// data, or know better than the request in which language they are to be told.
type (
	faulty interface {
		Faults(locale.Locale) map[string][]string
	}
	informed interface{ Data() []byte }
	pointing interface{ Member() string }
	speaking interface{ Language() locale.Locale }
)

// plain is a problem of the server itself.
type plain struct {
	code string
	text locale.Text
}

func (p *plain) Error() string                  { return p.code }
func (p *plain) Code() string                   { return p.code }
func (p *plain) Message(l locale.Locale) string { return p.text.In(l) }

var (
	errNotFound = &plain{"not_found", locale.Text{
		locale.En: "There is nothing at this address.",
		locale.Ar: "لا يوجد شيء في هذا العنوان.",
	}}
	errMethodNotAllowed = &plain{"method_not_allowed", locale.Text{
		locale.En: "This address does not take this method; see the Allow header.",
		locale.Ar: "هذا العنوان لا يقبل هذه الطريقة؛ راجع الترويسة Allow.",
	}}
	errRateLimited = &plain{"rate_limited", locale.Text{
		locale.En: "Too many requests. Please slow down and try again in a moment.",
		locale.Ar: "طلبات كثيرة جدًا. يُرجى التمهل والمحاولة بعد لحظات.",
	}}
	errUnavailable = &plain{"unavailable", locale.Text{
		locale.En: "The service is busy right now. Please try again in a moment.",
		locale.Ar: "الخدمة مشغولة الآن. يُرجى المحاولة بعد لحظات.",
	}}
	errInternal = &plain{"internal", locale.Text{
		locale.En: "Something went wrong on our side.",
		locale.Ar: "حدث خطأ من جانبنا.",
	}}
)

// problems is the only place where an error becomes an answer.
type problems struct {
	log           *slog.Logger
	storeLanguage func(*http.Request) locale.Locale // nil: English
}

// answer turns a handler that returns errors into one that Gin takes.
func (p problems) answer(handle func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := handle(c); err != nil {
			p.write(c, err)
		}
	}
}

// recover turns a panic into a 500 that says nothing; the log has all of it.
func (p problems) recover(c *gin.Context) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		err, ok := v.(error)
		if ok && errors.Is(err, http.ErrAbortHandler) {
			panic(v)
		}
		p.log.ErrorContext(c.Request.Context(), "panic", "value", cut(fmt.Sprint(v), maxLoggedError), "stack", string(debug.Stack()), "request_id", c.GetString(requestIDKey))
		p.write(c, fmt.Errorf("panic: %v", v))
	}()
	c.Next()
}

// told is the body of every error.
type told struct {
	Success   bool                `json:"success"`
	Message   string              `json:"message"`
	Code      string              `json:"code"`
	Errors    map[string][]string `json:"errors"`
	Data      json.RawMessage     `json:"data"`
	RequestID string              `json:"request_id"`
	API       string              `json:"api"`
	Timestamp int64               `json:"timestamp"`
}

// write answers with an error. One that wraps http.ErrAbortHandler ends the connection
// in the place of an answer.
func (p problems) write(c *gin.Context, err error) {
	c.Abort()
	_ = c.Error(err) // for the request's line in the log
	if errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	if c.Writer.Written() {
		return
	}
	known := asProblem(err)
	body := told{
		Code: known.Code(), RequestID: c.GetString(requestIDKey),
		API: APIName, Timestamp: time.Now().Unix(),
	}
	status := statuses[body.Code]
	l := p.language(c, known, status)
	body.Message = known.Message(l)
	if f, ok := known.(faulty); ok {
		body.Errors = f.Faults(l)
	} else if f, ok := known.(pointing); ok && f.Member() != "" {
		body.Errors = map[string][]string{f.Member(): {body.Message}}
	}
	if i, ok := known.(informed); ok {
		body.Data = i.Data()
	}
	switch status {
	case http.StatusUnauthorized:
		c.Header("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusGatewayTimeout:
		c.Header("Retry-After", "1")
	}
	c.Header("Cache-Control", "no-store")
	encoded, _ := json.Marshal(body) // strings and JSON made here always marshal
	c.Data(status, "application/json; charset=utf-8", encoded)
}

// language is the one to answer a problem in: the problem's own, else the caller's,
// else the store's. The store is looked up only for mistakes of the caller: while the
// service is in trouble or the caller asks too much, an error costs nothing more.
func (p problems) language(c *gin.Context, known problem, status int) locale.Locale {
	if s, ok := known.(speaking); ok && s.Language() != "" {
		return s.Language()
	}
	wanted := locale.Match(c.GetHeader("Accept-Language"), "")
	if wanted == "" && p.storeLanguage != nil && status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
		wanted = p.storeLanguage(c.Request)
	}
	return cmp.Or(wanted, locale.En)
}

// asProblem finds what may be told of an error: nothing at all of one that nobody
// foresaw.
func asProblem(err error) problem {
	var known problem
	switch {
	case errors.As(err, &known) && statuses[known.Code()] != 0:
		return known
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return errUnavailable
	}
	return errInternal
}

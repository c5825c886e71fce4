package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

var (
	errNotFound = problem.New(problem.NotFound, "", locale.Text{
		locale.En: "This URL does not exist.",
		locale.Ar: "هذا العنوان غير موجود.",
	})
	errMethodNotAllowed = problem.New(problem.MethodNotAllowed, "", locale.Text{
		locale.En: "This URL does not support this method. See the Allow header.",
		locale.Ar: "هذا العنوان لا يدعم هذه الطريقة. راجع الترويسة Allow.",
	})
	errRateLimited = problem.New(problem.RateLimited, "", locale.Text{
		locale.En: "Too many requests. Please slow down and try again in a moment.",
		locale.Ar: "طلبات كثيرة جدًا. يُرجى التمهل والمحاولة بعد لحظات.",
	})
	errUnavailable = problem.New(problem.Unavailable, "", locale.Text{
		locale.En: "The service is busy right now. Please try again in a moment.",
		locale.Ar: "الخدمة مشغولة الآن. يُرجى المحاولة بعد لحظات.",
	})
	errInternal = problem.New(problem.Internal, "", locale.Text{
		locale.En: "Something went wrong on our side.",
		locale.Ar: "حدث خطأ من جانبنا.",
	})
)

// problemOf returns what clients see of an error. An error that is no problem.Error, or
// whose code has no status, becomes internal.
func problemOf(err error) *problem.Error {
	known, ok := errors.AsType[*problem.Error](err)
	switch {
	case ok && known.HTTPStatus() != 0:
		return known
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return errUnavailable
	}
	return errInternal
}

// language chooses the language of an error: the answer's, else the one that the request
// asks for, else the store's. The store is looked up only for mistakes of the caller: a
// 5xx or a 429 must not cause more work.
func (r *responder) language(c *gin.Context, answered locale.Locale, status int) locale.Locale {
	if answered != "" {
		return answered
	}
	wanted := locale.Match(c.GetHeader("Accept-Language"), "")
	if wanted == "" && r.Language != nil && status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
		wanted = r.Language(c.Request)
	}
	return cmp.Or(wanted, locale.En)
}

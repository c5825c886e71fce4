package subscriptionshttp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/subscriptions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestErrors_HaveSentencesInBothLanguages(t *testing.T) {
	t.Parallel()
	texts := []locale.Text{
		textNoParameters, textUnreadable, textUnknown, textRepeated, textEmpty,
		textPage, textTooFar, textPerPage, textEmail, textPhone, textCallingCode, textStatuses, textExternalCustomer, textLink,
		textUnknownOfChanges, textNoValue, textLimit, textLimitOfStream, textCursor,
	}
	for _, known := range []*problem.Error{
		subscriptions.ErrNotFound, subscriptions.ErrCursorExpired, subscriptions.ErrNoChanges, subscriptions.ErrManySkips,
		subscriptions.Unavailable(nil), errManyStreams,
	} {
		texts = append(texts, locale.Text{locale.En: known.Message(locale.En), locale.Ar: known.Message(locale.Ar)})
	}
	for _, text := range texts {
		en, ar := text[locale.En], text[locale.Ar]
		if en == "" || !strings.ContainsFunc(ar, func(r rune) bool { return unicode.Is(unicode.Arabic, r) }) {
			t.Errorf("%q, %q: want English and Arabic", en, ar)
		}
	}
}

func TestError_LogsTheCauseAndNeverAValue(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	if err := subscriptions.Unavailable(down); !errors.Is(err, down) || !strings.Contains(err.Error(), "connection refused") || err.Members("en") != nil {
		t.Errorf("got %v", err)
	}
	_, err := parseListing("customerEmail=secret-person&customerPhone=%2B966secret")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the log would read %v", err)
	}
}

// downSource is a source that fails.
type downSource struct {
	subscriptions.Source
	err error
}

func (d downSource) LinkKeys(context.Context, bool) ([][]byte, error) { return nil, d.err }

func TestError_LogsTheFailedCall(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	inner := subscriptions.Unavailable(down)
	a := New(Config{Source: downSource{err: inner}})
	_, err := a.list(&visit{
		Context: &gin.Context{Request: httptest.NewRequest(http.MethodGet, "/subscriptions", nil)},
		store:   &store.Store{ID: 7},
	})
	for _, want := range []string{"read the keys of page links", "connection refused"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the log would read %v, want %q in it", err, want)
		}
	}
	if known, ok := errors.AsType[*problem.Error](err); !ok || !errors.Is(err, down) ||
		known.Code != inner.Code || known.Message(locale.Ar) != inner.Message(locale.Ar) {
		t.Errorf("the caller would get %+v, want %v", known, inner)
	}
}

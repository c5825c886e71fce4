package auth

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"commerce/auth/problem"
	"commerce/deploy/assert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the time at which tests with their own clock begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

var (
	testSecret     = []byte("0123456789abcdef0123456789abcdef")
	previousSecret = []byte("the secret of the month before, 1")
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// wantRefusal fails t unless err is exactly want; a nil want means success.
func wantRefusal(t *testing.T, err error, want *problem.Error) {
	t.Helper()
	switch {
	case want == nil && err != nil:
		t.Fatalf("got error %v, want none", err)
	case want != nil && !errors.Is(err, want):
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func wantCode(t *testing.T, err error, code problem.Code) *problem.Error {
	t.Helper()
	var refused *problem.Error
	assert.Require(t, errors.As(err, &refused) && refused.Code == code, "got error %v, want code %s", err, code)
	return refused
}

package subscriptionshttp

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"commerce/deploy/assert"
	"commerce/subscriptions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestError_LogsTheCauseAndNeverAValue(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	known := subscriptions.Unavailable(down)
	assert.ErrorIs(t, known, down, "unavailable")
	assert.That(t, strings.Contains(known.Error(), "connection refused") && known.Members("en") == nil, "got %v", known)
	_, err := parseListing("customerEmail=secret-person&customerPhone=%2B966secret")
	assert.That(t, err != nil && !strings.Contains(err.Error(), "secret"), "the log would read %v", err)
}

package backstage_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"commerce/auth/problem"
	"commerce/cmd/internal/backstage"
	"commerce/deploy/assert"
	"commerce/deploy/sample"
)

// It sends requests over loopback, where agents may name profiles of this machine.
func TestAgent_ActsOnlyForThisMachine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, host string
		headers    []string
		want       problem.Code
	}{
		{"127.0.0.1:5000", "localhost:8080", nil, problem.ValidationFailed}, // of the body
		{"[::1]:5000", "[::1]:8080", []string{"Origin", "http://[::1]:8080"}, problem.ValidationFailed},
		{"192.168.1.7:5000", "localhost:8080", nil, problem.NotFound},
		{"192.168.1.7:5000", "192.168.1.2:8080", nil, problem.NotFound},
		{"127.0.0.1:5000", "rebound.example.com:8080", []string{"Origin", "http://rebound.example.com:8080"}, problem.NotFound},
		{"127.0.0.1:5000", "localhost:8080", []string{"X-Forwarded-For", "192.0.2.1"}, problem.NotFound},
		{"127.0.0.1:5000", "localhost:8080", []string{"Forwarded", "for=192.0.2.1"}, problem.NotFound},
	} {
		for _, r := range backstage.Routes(sample.Stores()[0], nil, nil, nil) {
			if r.Path != "/playground/agent" {
				continue
			}
			c, _ := gin.CreateTestContext(httptest.NewRecorder())
			c.Request = httptest.NewRequest(r.Method, "http://"+tt.host+r.Path, strings.NewReader(`{}`))
			c.Request.RemoteAddr = tt.from
			c.Request.Header.Set("Content-Type", "application/json")
			for i := 0; i < len(tt.headers); i += 2 {
				c.Request.Header.Set(tt.headers[i], tt.headers[i+1])
			}
			_, err := r.Handle(c)
			refused, ok := errors.AsType[*problem.Error](err)
			assert.That(t, ok && refused.Code == tt.want, "from %s to %s, %v: %v, want %s", tt.from, tt.host, tt.headers, err, tt.want)
		}
	}
}

package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/cmd/internal/server"
)

func TestLog_TruncatesWhatACallerSends(t *testing.T) {
	t.Parallel()
	h, log := handlerOf(t, func(c *server.Config) {
		c.Areas = only("/defect", func(c *gin.Context) (wire.Answer, error) {
			return wire.Answer{}, fmt.Errorf("no %s", c.Query("q"))
		})
	})
	long := strings.Repeat("X", 60_000)
	ask(h, "192.0.2.1", long, "/nothing", "User-Agent", long, "X-Request-Id", long)
	ask(h, "192.0.2.1", "GET", "/"+long)
	ask(h, "192.0.2.1", "GET", "/defect?q="+long)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	assert(t, len(lines) == 3, "%d lines for 3 requests", len(lines))
	for _, line := range lines {
		assert(t, len(line) <= 4<<10, "a line of %d bytes: %.200s…", len(line), line)
	}
}

func TestBody_ThatTimesOutEndsTheConnection(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	impatient := httptest.NewUnstartedServer(s.handler)
	impatient.Config.ReadTimeout = 300 * time.Millisecond
	impatient.Start()
	defer impatient.Close()
	conn := must(net.Dial("tcp", impatient.Listener.Addr().String()))(t)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /cart/add HTTP/1.1\r\nHost: x\r\nX-Public-Key: %s\r\nContent-Length: 100\r\n\r\n{", s.Key)
	noError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	answered, err := io.ReadAll(conn)
	assert(t, err == nil && (len(answered) <= 0 || strings.Contains(string(answered), " 408 ")), "got %q, %v; want no answer, or 408", answered, err)
	logged := s.Log.logged(t)
	last := logged[len(logged)-1]
	assert(t, last["status"] == 499.0 && last["level"] == "INFO", "logged as %v", last)
}

func TestErrors_AreArabicInAnArabicStore(t *testing.T) {
	t.Parallel()
	arabic := func(p *server.Parts) {
		store := must(p.Stores.Sole(t.Context()))(t)
		other := *store
		other.ID, other.PublicKeys = store.ID+50_000, []string{"pk_english"}
		ours := *store
		ours.Locale = locale.Ar
		p.Stores, p.DefaultStore = auth.NewMemoryStores(money.Known, &ours, &other), other.ID
	}
	s := openShop(t, embeddedRedis(t), arabic)
	customer := s.customer(t, "1001")
	inArabic := func(a answer) bool { return strings.ContainsAny(a.Body.Message, "ابتثج") }
	for _, test := range []struct {
		name, method, path string
		status             int
		headers            []string
		arabic             bool
	}{
		{"unknown route", "GET", "/nothing", 404, []string{"X-Public-Key", s.Key}, true},
		{"wrong method", "PUT", "/cart", 405, []string{"X-Public-Key", s.Key}, true},
		{"bad token", "GET", "/cart", 401, []string{"X-Public-Key", s.Key, "Authorization", "Bearer x"}, true},
		{"by its customer", "GET", "/nothing", 404, []string{"X-Public-Key", "", "Authorization", "Bearer " + customer.JWT}, true},
		{"another store's customer", "GET", "/cart", 401, []string{"X-Public-Key", "pk_english", "Authorization", "Bearer " + customer.JWT}, false},
		{"asked for English", "GET", "/nothing", 404, []string{"X-Public-Key", s.Key, "Accept-Language", "en"}, false},
		{"the default store", "GET", "/nothing", 404, []string{"X-Public-Key", ""}, false},
		{"an unknown key", "GET", "/nothing", 404, []string{"X-Public-Key", "pk_unknown"}, false},
	} {
		a := s.guest(t).send(test.method, test.path, "", test.headers...)
		assert(t, a.Status == test.status && inArabic(a) == test.arabic, "%s: %d %q, want %d, Arabic %v", test.name, a.Status, a.Body.Message, test.status, test.arabic)
	}
	alone := openShop(t, embeddedRedis(t), func(p *server.Parts) { arabic(p); p.DefaultStore = 0 })
	alone.Key = ""
	assert(t, !inArabic(alone.guest(t).send("GET", "/nothing", "")), "without a store the error is Arabic")
}

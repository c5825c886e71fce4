package server_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"commerce/deploy/ephemeral"
)

// The outbox of docs/mobile.md keeps an add that only another server has answered.
func TestMobileGuide_KeepsWhatAnotherServerAnswers(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	service := startDemo(t).url
	for name, answer := range map[string]http.HandlerFunc{
		"403 page":          gatewayPage(http.StatusForbidden),
		"408 page":          gatewayPage(http.StatusRequestTimeout),
		"502 page":          gatewayPage(http.StatusBadGateway),
		"a network's login": gatewayPage(http.StatusOK),
		"404 in JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"message": "no such route"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			phone := newPhone(t)
			phone.store(t, "POST", "/cart/add", `{"product_id":2,"qty":1}`)
			for _, tc := range []struct {
				url, want string
			}{
				{serveGateway(t, answer), "outbox/001: no answer, again later\n"},
				{service, "outbox/001: 200, 1 in the cart, 0 replayed\n"},
			} {
				equal(t, phone.send(t, tc.url), tc.want, "what the outbox says")
			}
		})
	}
}

// A shopper who tries too many coupon codes can still add.
func TestMobileGuide_AddsAfterTooManyCoupons(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	phone := newPhone(t)
	for i := range 21 {
		phone.store(t, "POST", "/cart/coupon", fmt.Sprintf(`{"coupon":"WRONG%d"}`, i))
	}
	phone.store(t, "POST", "/cart/add", `{"product_id":2,"qty":1}`)
	said := phone.send(t, startDemo(t).url)
	assert(t, strings.Contains(said, "outbox/021: 429, ") && strings.HasSuffix(said, "outbox/022: 200, 1 in the cart, 0 replayed\n"), "the outbox says:\n%s", said)
}

// phone is an app with the outbox that the guide asks its readers to save.
type phone struct {
	dir    string
	token  string // of the cart
	stored int
}

func newPhone(t *testing.T) *phone {
	t.Helper()
	p := &phone{dir: t.TempDir(), token: rand.Text()}
	noError(t, os.Mkdir(filepath.Join(p.dir, "outbox"), 0o700))
	for _, e := range examplesOf(t, "docs/mobile.md") {
		if strings.HasPrefix(e.script, "cat >outbox.sh ") {
			terminal{dir: p.dir}.run(t, e.script) // sends nothing, since nothing is stored
			return p
		}
	}
	t.Fatal("the guide has no outbox.sh")
	return nil
}

// store stores a change after the others.
func (p *phone) store(t *testing.T, method, path, body string) {
	t.Helper()
	p.stored++
	change := fmt.Sprintf(`{"method":%q,"path":%q,"body":%s,"key":"change-%d"}`, method, path, body, p.stored)
	noError(t, os.WriteFile(filepath.Join(p.dir, "outbox", fmt.Sprintf("%03d", p.stored)), []byte(change), 0o600))
}

// send returns what outbox.sh prints with a service at a URL.
func (p *phone) send(t *testing.T, service string) string {
	t.Helper()
	return terminal{dir: p.dir, url: service}.run(t, "export BASE=http://localhost:8080 TOKEN="+p.token+"\nsh outbox.sh\n")
}

package check_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// authorities is where Go programs look for the certificates of public authorities.
const authorities = "/etc/ssl/certs/ca-certificates.crt"

// The image contains what the program needs: it migrates, serves carts from a read-only root
// as another user, and verifies the certificate of the issuer's keys.
func TestImage_ServesFromAReadOnlyRootAsAnotherUser(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	image := builtImage(t)
	known, err := os.ReadFile(image.files[authorities])
	assert.Require(t, err == nil, "the image has no %s: %v", authorities, err)
	database := ephemeral.Postgres(t)
	for _, test := range []struct {
		name        string
		authorities string
		customer    int // the status of a customer's call
	}{
		{"that knows the issuer's authority", string(known) + issuer.certificate, http.StatusOK},
		{"that does not", string(known), http.StatusServiceUnavailable},
	} {
		c := image.container(t, map[string]string{authorities: test.authorities})
		env := map[string]string{"DATABASE_URL": database, "REDIS_URL": ephemeral.Redis(t), "JWT_JWKS_URL": issuer.URL, "JWT_AUDIENCE": "shop"}
		c.run(t, env, "migrate", "up")
		c.run(t, env, "seed")
		s := c.serve(t, env, image.arguments...)

		s.want(t, http.StatusOK, s.admin+"/healthz")
		s.want(t, http.StatusOK, s.admin+"/readyz")
		got := s.want(t, http.StatusOK, s.admin+"/version")
		assert.That(t, strings.Contains(got, `"`+rehearsedVersion+`"`), "version %s, want %s", got, rehearsedVersion)
		s.want(t, http.StatusOK, s.public+"/cart", "X-Public-Key", "pk_demo")
		s.want(t, test.customer, s.public+"/cart", "X-Public-Key", "pk_demo", "Authorization", "Bearer "+issuer.token)
		s.wantIsolation(t, image)
		s.wantStops(t)
	}
}

// wantIsolation checks as whom the process runs, that it has no capabilities, and that it cannot
// write to its root.
func (s service) wantIsolation(t *testing.T, i image) {
	t.Helper()
	patterns := map[string]string{"mountinfo": `(?m)^\d+ \d+ \S+ \S+ / ro\b`}
	if os.Geteuid() == 0 { // otherwise the kernel shows the user to whom the numbers are mapped
		patterns["status"] = fmt.Sprintf(`(?s)\nUid:\t%d\t.*\nGid:\t%d\t.*\nCapEff:\t0000000000000000\n`, i.uid, i.gid)
	}
	for name, pattern := range patterns {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.cmd.Process.Pid, name))
		assert.That(t, err == nil && regexp.MustCompile(pattern).Match(text),
			"want %s in the %s of the process: %v\n%s", pattern, name, err, text)
	}
}

// issuer is a server of keys over TLS, whose certificate no public authority has signed.
type issuer struct {
	*httptest.Server
	certificate string // of its authority, in PEM
	token       string // of a customer
}

func newIssuer(t *testing.T) issuer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	assert.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":"1","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not know the authority
	server.StartTLS()
	t.Cleanup(server.Close)
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"sub": "1001", "aud": "shop", "store_id": 1, "exp": time.Now().Add(time.Hour).Unix()})
	token.Header["kid"] = "1"
	signed, err := token.SignedString(private)
	assert.NoError(t, err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return issuer{server, "\n" + string(certificate), signed}
}
